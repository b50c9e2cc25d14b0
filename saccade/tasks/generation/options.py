"""Options for generated texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from saccade.search.sampling import check_draws
from saccade.tasks.options import Options

BEAM = 5
"""How many hypotheses a search keeps by default."""

LENGTH_PENALTY = 0.6
"""The default length penalty of a beam search."""

RANGES = {
    "beam": (1, 1_000),
    "nbest": (1, 1_000),
    "max_length": (1, 10_000),
    "min_length": (0, 10_000),
    "no_repeat_ngram": (0, 10_000),
    "top_k": (1, 2**31 - 1),
    "seed": (0, 2**31 - 1),
    "length_penalty": (0.0, 100.0),
    "coverage_penalty": (0.0, 1e6),
    "ctc_weight": (0.0, 1.0),
    "temperature": (1e-6, 1e6),
}
"""The smallest and largest sensible value of each option."""


@dataclass(frozen=True, kw_only=True)
class WritingOptions(Options):
    """How a text is written, for any kind of input.

    The score that texts are ranked by is their log-probability, summed over all tokens and the end, divided by
    ((5 + tokens) / 6) ^ length_penalty. With a length penalty of 0 it is the log-probability itself.

    Args:
        beam: the number of hypotheses kept at each step of the search; 1 is greedy search (default: 5).
        nbest: how many texts to return for each input.
        length_penalty: the exponent of the length that scores are divided by; 0 favours short texts, 1 nearly compares
            means per token (default: 0.6, and 0 with sample).
        min_length: the minimum number of tokens of a text (default: 0).
        max_length: the maximum number of tokens of a text.
        no_repeat_ngram: never write the same sequence of this many tokens twice; 0 allows repetition (default: 0).
        sample: sample from the model instead of searching.
        temperature: of sampling; lower values give less varied answers (default: 1).
        top_k: sample only from this many of the most probable tokens (default: from all).
        top_p: sample only from the most probable tokens that together have this probability (default: 1).
        seed: of sampling; the same seed gives the same answers (default: a new one each time).
    """

    usual_beam: ClassVar[int] = BEAM

    beam: int | None = None
    nbest: int = 1
    length_penalty: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    no_repeat_ngram: int | None = None
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    @property
    def several(self) -> bool:
        return self.nbest > 1

    def check(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name, None)
            if value is not None and not least <= value <= most:
                raise ValueError(f"{name} must be from {least} to {most}, got {value}.")
        if self.sample:
            if self.beam is not None:
                raise ValueError("beam and sample exclude each other: choose beam search or sampling.")
            draws: dict[str, Any] = {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}
            check_draws(**{name: value for name, value in draws.items() if value is not None})
        else:
            for name in ("temperature", "top_k", "top_p", "seed"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} only affects sampling: set sample as well.")
            if self.nbest > self.width:
                raise ValueError(f"nbest={self.nbest} needs a beam of at least {self.nbest}, got beam={self.width}.")
        if self.max_length is not None and (self.min_length or 0) > self.max_length:
            raise ValueError(f"min_length={self.min_length} is more than max_length={self.max_length}.")

    @property
    def width(self) -> int:
        """How many hypotheses the search keeps."""
        return self.usual_beam if self.beam is None else self.beam

    @property
    def rows(self) -> int:
        return 1 if self.sample else self.width

    @property
    def shares(self) -> bool:
        return self.seed is None  # the draws of a batch come from one generator

    def wishes(self) -> dict[str, Any]:
        """The given arguments of a search."""
        names = ("min_length", "no_repeat_ngram", "length_penalty")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, kw_only=True)
class SearchOptions(WritingOptions):
    """How the text for an input is written.

    The coverage penalty, if there is one, is added to the score.

    Args:
        coverage_penalty: the cost of leaving parts of the input unread (default: 0).
        ctc_weight: how much CTC counts in a search, from 0 to 1, for a model that was trained with it (default: as
            much as in training).
        max_length: the maximum number of tokens of a text (default: ten more than the longest training target, or than
            twice what the length of the input suggests, whichever is more).
        prefix: a text that all answers must begin with; in Python also a list with one for each input.
        forbidden: a text that no answer may contain, split by the vocabulary; may be given several times.
        forced: a piece to write at a position, counted from 0, as in 0=The; may be given several times.
        alignments: also print which input word each output word attended to most, as in 0-0 1-2; words are separated by
            spaces and counted from 0.
        subwords: align pieces of the vocabulary instead of words; the last input piece is the end token.
    """

    coverage_penalty: float | None = None
    ctc_weight: float | None = None
    prefix: Any = None
    forbidden: list[Any] | None = None
    forced: Any = field(default=None, metadata={"several": True})
    alignments: bool = False
    subwords: bool = False

    @classmethod
    def of(cls, given: Any) -> Self:
        forced = given.get("forced")
        if isinstance(forced, list | tuple):
            given = {**given, "forced": dict(map(_place, forced))}
        return super().of(given)

    def check(self) -> None:
        super().check()
        if self.subwords and not self.alignments:
            raise ValueError("subwords only affects alignments: set alignments as well.")
        if self.prefix is not None and not _is_text_or_ids(self.prefix):
            raise ValueError(f"prefix must be a text, or a list with one for each input; got {self.prefix!r:.60}.")
        if isinstance(self.forbidden, str):
            raise ValueError(f"forbidden must be a list: write [{self.forbidden!r}].")
        for text in self.forbidden or ():
            if (not text and text != 0) or not (isinstance(text, int) or _is_text_or_ids(text)):
                raise ValueError(f"forbidden: each entry must be a text of at least one piece, got {text!r:.60}.")
        if self.forced is not None and not isinstance(self.forced, dict):
            raise ValueError(f"forced must map positions to pieces, as in {{0: The}}; got {self.forced!r:.60}.")
        for place in self.forced or ():
            most = self.max_length or RANGES["max_length"][1]
            if not isinstance(place, int) or not 0 <= place < most:
                raise ValueError(f"forced: positions are counted from 0 and must be below {most}, got {place!r:.60}.")

    @property
    def looks(self) -> bool:
        return self.alignments

    def wishes(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("coverage_penalty", "prefix", "forbidden", "forced")}
        return super().wishes() | {name: value for name, value in own.items() if value not in (None, [], {})}

    def part(self, numbers: Sequence[int], of: int) -> Self:
        if not isinstance(self.prefix, list | tuple) or not self.prefix or isinstance(self.prefix[0], int):
            return self
        if len(self.prefix) != of:
            raise ValueError(f"prefix must be one text for all inputs or one for each of {of}, got {len(self.prefix)}.")
        return replace(self, prefix=[self.prefix[number] for number in numbers])

    def describe(self) -> str:
        name = "sampling" if self.sample else "greedy search" if self.width == 1 else "beam search"
        shown: dict[str, Any] = {} if self.sample else {"beam": self.width}
        if name == "beam search":
            shown["length_penalty"] = LENGTH_PENALTY
        hidden = ("beam", "nbest", "sample", "alignments", "subwords")
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        shown |= {option: value for option, value in given.items() if value not in (None, False)}
        listed = ", ".join(f"{option.replace('_', ' ')} {value}" for option, value in shown.items())
        return f"{name} ({listed})" if listed else name


def _is_text_or_ids(value: Any) -> bool:
    """Whether this is a text, a list of ids, or a list of these."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, int) or _is_text_or_ids(one) for one in value)
    return isinstance(value, str)


def _place(entry: Any) -> tuple[int, str]:
    """`0=The` as (0, "The")."""
    place, equals, piece = str(entry).partition("=")
    if not equals or not place.strip().isdecimal() or not piece or len(place) > 9:
        raise ValueError(f"forced takes a position and a piece, as in 0=The; got {entry!r:.60}.")
    return int(place), piece
