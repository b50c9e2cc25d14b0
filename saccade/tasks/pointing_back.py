"""What a language model pointed at instead of using its vocabulary, as the explorer shows it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.interpretation.explorer import Map, TextAxis
from saccade.interpretation.recording import Trace

POINTER = "pointer"
"""The name of the attention whose weights are shares of probability; the rest is the vocabulary's share."""

VOCABULARY = "(vocabulary)"


def trust(trace: Trace) -> Tensor | None:
    """(queries,): how much of each next token's probability the pointer has; None for a model without one."""
    if POINTER not in trace.paths:
        return None
    return trace.joined(POINTER)[0].float().cpu().sum((0, -1))


def with_vocabulary(shown: Map, predicted: Sequence[str]) -> Map:
    """The map of a pointer with the tokens that were predicted as its rows, and the vocabulary as its first column.

    Other maps stay as they are.

    Args:
        shown: any map of a text over itself.
        predicted: the token after each position.
    """
    if shown.name != POINTER or not isinstance(shown.keys, TextAxis):
        return shown
    weights = shown.dense()
    rest = (1.0 - weights.sum(-1, keepdim=True)).clamp(min=0.0)
    keys = shown.keys
    words = None if keys.words is None else [[place + 1 for place in word] for word in keys.words]
    special = [0, *(place + 1 for place in keys.special)]
    return Map(
        name=shown.name,
        weights=torch.cat([rest, weights], dim=-1),
        queries=TextAxis(pieces=list(predicted)),
        keys=TextAxis(pieces=[VOCABULARY, *keys.pieces], words=words, special=special),
        sides=("next word", "word pointed at"),
    )
