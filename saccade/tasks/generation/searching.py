"""Which search writes a text."""

from __future__ import annotations

from typing import Any

import torch

from saccade.models import EncoderDecoder
from saccade.search import Hypothesis, JointCTC, Searchable, greedy
from saccade.search import beam as beam_search
from saccade.search import sample as draw
from saccade.tasks.generation.options import SearchOptions, WritingOptions


def search(
    model: Searchable, encoded: Any, options: WritingOptions, *, max_length: Any, **wishes: Any
) -> list[list[Hypothesis]]:
    """The best hypotheses for each source, the best first.

    Args:
        model: with `begin`, `step`, `select` and `reorder`.
        encoded: what it begins from, with a `mask` (batch, keys).
        options: with ids in prefix, forbidden and forced.
        max_length: the most tokens, for all or for each of the batch.
        wishes: constraints in addition to those of the options, such as a prefix.
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


def with_ctc(model: EncoderDecoder, options: SearchOptions) -> Searchable:
    """What a search uses: the model, or the model and its CTC together."""
    ctc, weight = getattr(model, "ctc", None), options.ctc_weight
    if ctc is None:
        if weight:
            raise ValueError(f"ctc_weight={weight} needs a model trained with ctc_weight, but this one has no CTC.")
        return model
    if weight is None:
        weight = 0.0 if options.sample else ctc.weight
    return JointCTC(model, ctc, weight) if weight else model
