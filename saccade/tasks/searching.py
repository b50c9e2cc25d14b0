"""Which search writes a prediction."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from saccade.registry import nearest
from saccade.search import Hypothesis, greedy
from saccade.search import beam as beam_search
from saccade.search import sample as draw
from saccade.search.constraints import Wishes
from saccade.search.penalties import Penalties
from saccade.search.sampling import check_draws

BEAM = 5
"""How many hypotheses a search keeps, unless its user says."""

LEAST = {"beam": 1, "nbest": 1, "batch_size": 1, "max_length": 1, "min_length": 0, "no_repeat_ngram": 0, "seed": 0}
"""Options that are whole numbers, and the least that each may be."""

LARGEST_SEED = 2**63 - 1

NO_LIMIT = 2**31 - 1

READ = 1000
STRETCH = 4
"""How many tokens of a source are read: as many times those of the longest training example, but at least READ."""

DRAWING = frozenset({"temperature", "top_k", "top_p", "seed"})
"""Options that mean nothing without draws."""


def search(
    model: Any,
    source: Tensor,
    mask: Tensor,
    *,
    beam: int | None = None,
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
        beam: how many hypotheses are kept at each step, by default 5; 1 is greedy search.
        nbest: how many of them are returned.
        sample: draw instead of searching; then nbest is how many are drawn, and there is no beam.
        seed: of the draws.
        max_length: the most tokens, of all or (batch,) of each; by default twice as many as its source has, and ten.
        options: the rest are those of `saccade.search.beam`, `greedy` or `sample`.
    """
    asked = {"beam": beam, "nbest": nbest, "sample": sample, "seed": seed, "max_length": max_length, **options}
    check_options(asked)
    encoded = model.encode(source, mask)
    longest = 2 * mask.sum(dim=1) + 10 if max_length is None else max_length  # of its own source, not of the batch
    if not isinstance(longest, int):
        longest = longest.clamp(max=last_position(model))
    if sample:
        generator = None if seed is None else torch.Generator(source.device).manual_seed(seed)
        draws = [draw(model, encoded, max_length=longest, generator=generator, **options) for _ in range(nbest)]
        return [sorted(several, key=lambda h: -h.score) for several in zip(*draws, strict=True)]
    size = BEAM if beam is None else beam
    if size == 1:
        return [[hypothesis] for hypothesis in greedy(model, encoded, max_length=longest, **options)]
    return beam_search(model, encoded, size=size, nbest=nbest, max_length=longest, **options)


def check_options(options: Mapping[str, Any]) -> None:
    """Raises a ValueError unless there are options of these names, with these values, and together."""
    known = {"beam", "nbest", "sample", "seed", "max_length", "batch_size"} | Wishes.__annotations__.keys()
    for function in (beam_search, draw):
        known |= {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    known -= {"size", "generator", "bos", "eos", "pad"}  # which are not the user's
    for name in options:
        if name not in known:
            raise ValueError(f"The search has no option {name!r}.{nearest(name, known)}")
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in ((name, given[name]) for name in LEAST if name in given):
        several = name == "max_length" and isinstance(value, Tensor)  # one for each source
        if not several and (not isinstance(value, int) or value < LEAST[name]):
            raise ValueError(f"{name} must be {LEAST[name]} or more, got {value!r}.")
    if given.get("seed", 0) > LARGEST_SEED:
        raise ValueError(f"seed must be {LARGEST_SEED} or less, got {given['seed']}.")
    _check_together(given)
    Penalties(given.get("length_penalty", 0.0), given.get("coverage_penalty", 0.0)).check()
    least, most = given.get("min_length", 0), given.get("max_length")
    if isinstance(most, int) and least > most:
        raise ValueError(f"min_length={least} is more than max_length={most}.")
    for place in given.get("forced") or ():
        if isinstance(most, int) and place >= most:
            raise ValueError(f"forced: place {place}, counted from 0, is beyond max_length={most}.")


def _check_together(given: Mapping[str, Any]) -> None:
    if given.get("sample"):
        if "beam" in given:
            raise ValueError("beam is for searches and sample=True draws: give one of the two.")
        check_draws(**{name: given[name] for name in DRAWING - {"seed"} if name in given})
        return
    for name in sorted(DRAWING & given.keys()):
        raise ValueError(f"{name} is for draws: it needs sample=True.")
    beam, nbest = given.get("beam", BEAM), given.get("nbest", 1)
    if nbest > beam:
        raise ValueError(f"nbest={nbest} hypotheses need a beam of as many, got beam={beam}.")


def describe_search(options: Mapping[str, Any]) -> str:
    """`beam search (beam 5, length penalty 0.6)` and the like."""
    given = {name: value for name, value in options.items() if value is not None}
    size = given.pop("beam", BEAM)
    usual = {} if given.get("sample") or size == 1 else {"length_penalty": _default("length_penalty")}
    name = "sampling" if given.pop("sample", False) else "greedy search" if size == 1 else "beam search"
    shown = {} if name == "sampling" else {"beam": size}
    shown |= {**usual, **{name: value for name, value in given.items() if name not in ("nbest", "batch_size")}}
    listed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
    return f"{name} ({listed})" if listed else name


def _default(option: str) -> Any:
    return inspect.signature(beam_search).parameters[option].default


def last_position(model: Any) -> int:
    """How many tokens a model can write: learned positions end somewhere, the others do not."""
    longest: int | None = model.longest_target()
    return NO_LIMIT if longest is None else longest


def most_read(model: Any, trained: int) -> int:
    """How many tokens of a source a model reads, of which training saw at most so many.

    All can be read that have positions, but far beyond what was trained nothing good is written, and for hours.
    """
    longest: int | None = model.longest_source()
    most = max(READ, STRETCH * trained)
    return most if longest is None else min(most, longest)
