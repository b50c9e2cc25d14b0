"""Which search writes a prediction."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from saccade.layers.positions import LearnedPositions
from saccade.registry import nearest
from saccade.search import Hypothesis, greedy
from saccade.search import beam as beam_search
from saccade.search import sample as draw


def search(
    model: Any,
    source: Tensor,
    mask: Tensor,
    *,
    beam: int = 5,
    nbest: int = 1,
    sample: bool = False,
    seed: int | None = None,
    max_length: int | Tensor | None = None,
    **options: Any,
) -> list[list[Hypothesis]]:
    """The best hypotheses for each source, the best first.

    Args:
        model: an encoder-decoder.
        source: (batch, length).
        mask: bool, True = real.
        beam: how many hypotheses are kept at each step; 1 is greedy search.
        nbest: how many of them are returned.
        sample: draw instead of searching; then nbest is how many are drawn, and beam plays no part.
        seed: of the draws.
        max_length: the most tokens, of all or (batch,) of each; by default twice as many as its source has, and ten.
        options: the rest are those of `saccade.search.beam`, `greedy` or `sample`.
    """
    if nbest < 1:
        raise ValueError(f"nbest must be 1 or more, got {nbest}.")
    if beam < 1:
        raise ValueError(f"beam must be 1 or more, got {beam}.")
    check_options(options, sample=sample)
    encoded = model.encode(source, mask)
    longest = 2 * mask.sum(dim=1) + 10 if max_length is None else max_length  # of its own source, not of the batch
    if not isinstance(longest, int):
        longest = longest.clamp(max=last_position(model))
    if sample:
        generator = None if seed is None else torch.Generator(source.device).manual_seed(seed)
        draws = [draw(model, encoded, max_length=longest, generator=generator, **options) for _ in range(nbest)]
        return [sorted(several, key=lambda h: -h.score) for several in zip(*draws, strict=True)]
    if beam == 1 and nbest == 1:
        return [[hypothesis] for hypothesis in greedy(model, encoded, max_length=longest, **options)]
    if nbest > beam:
        raise ValueError(f"nbest={nbest} hypotheses need a beam of as many, got beam={beam}.")
    return beam_search(model, encoded, size=beam, nbest=nbest, max_length=longest, **options)


def check_options(options: dict[str, Any], *, sample: bool) -> None:
    """Raises unless each is an option of the search that is meant."""
    own = {"model", "encoded", "size", "generator", "max_length"}  # which are given already
    drawing = set(inspect.signature(draw).parameters) - own
    searching = set(inspect.signature(beam_search).parameters) - own
    known = drawing if sample else searching
    for name in options:
        if name in known:
            continue
        if name in drawing:
            raise ValueError(f"{name} is for draws: it needs sample=True.")
        choices = nearest(name, known | {"beam", "nbest", "sample", "seed", "max_length", "batch_size"})
        raise ValueError(f"The search has no option {name!r}.{choices}")


def last_position(model: Any) -> int:
    """How many tokens a model can write: learned positions end somewhere, the others do not."""
    ends = [
        part.max_length - 1 for part in getattr(model, "decoder", model).modules() if isinstance(part, LearnedPositions)
    ]
    return min(ends, default=2**31 - 1)
