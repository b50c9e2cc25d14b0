"""Which search writes a text."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.search import Hypothesis, greedy
from saccade.search import beam as beam_search
from saccade.search import sample as draw
from saccade.tasks.generation.options import SearchOptions

READ = 1000
STRETCH = 4
"""Inputs are read up to so many times the longest training example, but at least up to READ positions."""


def search(
    model: Any, source: Tensor, mask: Tensor, options: SearchOptions, *, max_length: Tensor
) -> list[list[Hypothesis]]:
    """The best hypotheses for each source, the best first.

    Args:
        model: an encoder-decoder.
        source: (batch, length) or (batch, length, features).
        mask: bool, True = real.
        options: prefix, forbidden and forced hold ids.
        max_length: (batch,), the most tokens of each unless the options say.
    """
    wishes = ("min_length", "no_repeat_ngram", "prefix", "forbidden", "forced", "length_penalty", "coverage_penalty")
    given = {name: getattr(options, name) for name in wishes if getattr(options, name) not in (None, [], {})}
    limit: Any = options.max_length
    if limit is None:
        most = model.longest_target()
        limit = max_length if most is None else max_length.clamp(max=most)
    encoded = model.encode(source, mask)
    if options.sample:
        generator = None if options.seed is None else torch.Generator(source.device).manual_seed(options.seed)
        draws = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p")}
        given |= {name: value for name, value in draws.items() if value is not None}
        drawn = [draw(model, encoded, max_length=limit, generator=generator, **given) for _ in range(options.nbest)]
        return [sorted(several, key=lambda h: -h.score) for several in zip(*drawn, strict=True)]
    if options.width == 1:
        return [[hypothesis] for hypothesis in greedy(model, encoded, max_length=limit, **given)]
    return beam_search(model, encoded, size=options.width, nbest=options.nbest, max_length=limit, **given)


def most_read(model: Any, trained: int) -> int:
    """How many positions of an input a model reads, if training examples had at most `trained`.

    Far beyond what it was trained on a model writes nothing good, and takes hours over it.
    """
    positions: int | None = model.longest_source()
    return min(max(READ, STRETCH * trained), *([] if positions is None else [positions]), 2**31 - 1)
