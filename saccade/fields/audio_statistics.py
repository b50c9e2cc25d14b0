"""Means and deviations of the features of recordings: of all of them, of each speaker, or of one."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.artifacts import JsonObject

SAMPLED = 500
"""Recordings from which the statistics of the corpus are estimated."""
SAMPLED_OF_SPEAKER = 50
MOST_SPEAKERS = 5_000
SMALLEST = 1e-4
"""The standard deviation used for a band that is always silent."""
MOST_WILDCARDS = 4
"""In the template that finds the speaker in a path."""
LONGEST_NAME = 255
"""The maximum length of a file or folder name in which to look for a speaker; file systems allow no more."""


class Statistics(NamedTuple):
    """Mean and deviation of each feature, (dim,)."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def neutral(cls, dim: int) -> Statistics:
        """Statistics that leave features unchanged."""
        return cls(torch.zeros(dim), torch.ones(dim))

    @classmethod
    def of(cls, several: Iterable[Tensor], dim: int) -> Statistics:
        """The statistics of the frames of several recordings, each (frames, dim)."""
        count, total, squares = 0, torch.zeros(dim).double(), torch.zeros(dim).double()
        for features in several:
            exact = features.double()
            count, total, squares = count + len(exact), total + exact.sum(0), squares + exact.square().sum(0)
        if not count:
            return cls.neutral(dim)
        mean = total / count
        deviation = (squares / count - mean.square()).clamp(min=0.0).sqrt()
        return cls(mean.float(), torch.where(deviation > SMALLEST, deviation, 1.0).float())

    @classmethod
    def read(cls, found: JsonObject, dim: int) -> Statistics:
        """What `as_json` wrote, checked."""
        mean = found.take_list("mean", float, length=dim, least=-1e6, most=1e6)
        deviation = found.take_list("deviation", float, length=dim, least=1e-6, most=1e6)
        return cls(torch.tensor(mean), torch.tensor(deviation))

    def as_json(self) -> dict[str, Any]:
        """In JSON's types."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    def normalise(self, features: Tensor) -> Tensor:
        """Features (frames, dim) with mean 0 and deviation 1, if these are their statistics."""
        return (features - self.mean) / self.deviation


class Reservoir:
    """A random sample of bounded size from a stream of values.

    Reference:
        Vitter (1985), Random sampling with a reservoir, algorithm R.
    """

    def __init__(self, most: int, seed: str = "") -> None:
        self.most, self.kept, self._seen = most, list[Any](), 0
        self._draws = random.Random(f"0{seed}")

    def add(self, value: Any) -> None:
        """Adds the value to the sample, perhaps replacing another one."""
        place = self._seen if self._seen < self.most else self._draws.randrange(self._seen + 1)
        if place < self.most:
            self.kept[place : place + 1] = [value]
        self._seen += 1


def fit_speakers(
    values: Iterable[Any], speaker_of: Callable[[Any], str], compute: Callable[[Any], Tensor], dim: int
) -> dict[str, Statistics]:
    """The statistics of each speaker; values without one are left out."""
    samples: dict[str, Reservoir] = {}
    for value in values:
        speaker = speaker_of(value)
        if not speaker:
            continue
        if speaker not in samples and len(samples) == MOST_SPEAKERS:
            raise ValueError(
                f"normalise='speaker' keeps the statistics of up to {MOST_SPEAKERS:,} speakers, and there are more: "
                "use normalise='recording'."
            )
        samples.setdefault(speaker, Reservoir(SAMPLED_OF_SPEAKER, speaker)).add(value)
    if not samples:
        raise ValueError(
            "normalise='speaker' finds no speaker in any path: set speaker to how paths name them, as in {}/* for the "
            "folder."
        )
    return {name: Statistics.of(map(compute, sample.kept), dim) for name, sample in samples.items()}


class SpeakerTemplate:
    """Finds the speaker in a path; in the template `{}` is the speaker and `*` is anything.

    It describes the end of the path without its suffix, such as `{}/*` (the folder) or `*_{}_*` (a part of the name).
    If a path can be read in several ways, an early `*` takes as much as it can, and the speaker as little as it can.
    """

    def __init__(self, template: str) -> None:
        if template.count("{}") != 1 or template.count("*") > MOST_WILDCARDS:
            raise ValueError(
                f"speaker must mark the speaker in a path by {{}}, and anything else by up to {MOST_WILDCARDS} *, as "
                f"in {{}}/* or *_{{}}_*; got {template!r:.60}."
            )
        self._parts = [re.split(r"(\{\}|\*)", part) for part in template.split("/")]

    def find(self, path: str) -> str:
        """The speaker; empty if the path does not fit the template."""
        known = PurePath(path)
        if not known.name:  # such as "."
            return ""
        parts = known.with_suffix("").as_posix().split("/")[-len(self._parts) :]
        if len(parts) < len(self._parts) or max(map(len, parts)) > LONGEST_NAME:
            return ""
        found = [_captured(tokens, part) for tokens, part in zip(self._parts, parts, strict=True)]
        return "" if None in found else "".join(map(str, found))


def _captured(tokens: Sequence[str], text: str) -> str | None:
    """What `{}` stands for if the tokens describe the whole text, empty if there is none; else None."""

    @functools.cache  # so that the time grows with the square of the length, however many `*` there are
    def rest(number: int, place: int) -> str | None:
        if number == len(tokens):
            return "" if place == len(text) else None
        token = tokens[number]
        if token == "*":
            ends: Iterable[int] = range(len(text), place - 1, -1)
        elif token == "{}":
            ends = range(place + 1, len(text) + 1)
        else:
            ends = [place + len(token)] if text.startswith(token, place) else []
        for end in ends:
            found = rest(number + 1, end)
            if found is not None:
                return text[place:end] if token == "{}" else found
        return None

    return rest(0, 0)
