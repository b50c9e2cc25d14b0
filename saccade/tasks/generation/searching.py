"""Which search writes a text."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from saccade.search import Hypothesis, Searchable, greedy
from saccade.search import beam as beam_search
from saccade.search import sample as draw
from saccade.tasks.generation.options import WritingOptions
from saccade.tasks.generation.sides import writer

READ = 1000
STRETCH = 4
"""Inputs are read up to STRETCH times the length of the longest training example, and at least up to READ positions."""


def search(
    model: Searchable, encoded: Any, options: WritingOptions, *, max_length: Any, **wishes: Any
) -> list[list[Hypothesis]]:
    """The best hypotheses for each source, the best first.

    Args:
        model: with `begin`, `step`, `select` and `reorder`.
        encoded: what it begins from, with a `mask` (batch, keys).
        options: prefix, forbidden and forced, if there are any, hold ids.
        max_length: the most tokens, for all or for each of the batch.
        wishes: more constraints than the options hold, such as a prefix.
    """
    given = {**options.wishes(), **wishes}
    if options.sample:
        device = encoded.mask.device
        generator = None if options.seed is None else torch.Generator(device).manual_seed(options.seed)
        draws = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p")}
        given |= {name: value for name, value in draws.items() if value is not None}
        drawn = [
            draw(model, encoded, max_length=max_length, generator=generator, **given) for _ in range(options.nbest)
        ]
        return [sorted(several, key=lambda h: -h.score) for several in zip(*drawn, strict=True)]
    if options.width == 1:
        return [[hypothesis] for hypothesis in greedy(model, encoded, max_length=max_length, **given)]
    return beam_search(model, encoded, size=options.width, nbest=options.nbest, max_length=max_length, **given)


def most_read(model: nn.Module, trained: int) -> int:
    """How many positions of an input a model reads, if training examples had at most `trained`.

    Far beyond what it was trained on a model writes nothing good, and takes hours over it.
    """
    positions = writer(model).longest_source()
    return min(max(READ, STRETCH * trained), *([] if positions is None else [positions]), 2**31 - 1)
