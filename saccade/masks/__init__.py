"""Masks: bool, True = may be attended, broadcastable to (*batch, queries, keys).

A mask is a bool tensor or a predicate of this module; both combine with `&`, `|` and `~`:

    mask = masks.from_lengths(lengths) & masks.causal() & masks.window(64)
"""

from saccade.masks.base import Mask, as_mask, check_mask
from saccade.masks.fitting import check, fitted, resolve
from saccade.masks.predicates import causal, from_lengths, window

__all__ = ["Mask", "as_mask", "causal", "check", "check_mask", "fitted", "from_lengths", "resolve", "window"]
