"""The texts that `saccade align` reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import torch

from saccade.data.cell import Cell, text_of
from saccade.data.readers.lines import read_lines
from saccade.runs import Run
from saccade.tasks import Generation
from saccade.tasks.generation.forced_alignment import Pair, too_long
from saccade.tasks.generation.sides import WORDS

CHUNK = 1024
"""How many pairs are read before the first is written: pairs of similar length are aligned together."""


def pairs_of_lines(source: str, target: str) -> Iterator[list[Pair]]:
    """The pairs of lines, some at a time; empty lines are pairs too."""
    pairs: list[Pair] = []
    number = 0
    for number, lines in enumerate(zip_longest(read_lines(Path(source)), read_lines(Path(target))), start=1):
        if None in lines:
            counts = (f"{file} has {sum(1 for _ in read_lines(Path(file)))} lines" for file in (source, target))
            raise ValueError(f"The texts to align must have the same number of lines: {', '.join(counts)}.")
        for text, role, file in zip(lines, ("source", "target"), (source, target), strict=True):
            if text.strip():
                text_of(text, Cell(file, number, role, Path()))
        pairs.append(lines)
        if len(pairs) == CHUNK:
            yield pairs
            pairs = []
    if pairs:
        yield pairs
    elif not number:
        raise ValueError(f"{source} and {target} are empty: there is nothing to align.")


def warn_about_long(run: Run, pairs: Sequence[Pair], before: int) -> None:
    """Says which pairs are too long for the model; `before` is the number of pairs before these."""
    lines = [str(before + number + 1) for number in too_long(run.task, run.model, pairs)]
    if lines:
        shown = ", ".join(lines[:5]) + (", ..." if len(lines) > 5 else "")
        print(
            f"{len(lines)} pairs have more tokens than the model has positions, so they get no links: lines {shown}. "
            "Split them into sentences.",
            file=sys.stderr,
        )


def unknown_parts(run: Run, pairs: Sequence[Pair]) -> dict[int, list[str]]:
    """What the model has never seen in each pair; words of a target that it can copy from the source do not count."""
    found = {}
    copying = isinstance(run.task, Generation) and run.task.copying
    for number, texts in enumerate(pairs):
        sides = zip(("source", "target"), texts, strict=True)
        source, target = (run.task.fields[role].unknown(text) if text.strip() else [] for role, text in sides)
        parts = [*source, *(part for part in target if not (copying and part in source))]
        if parts:
            found[number] = parts
    return found


def ids_of(run: Run, pairs: Sequence[Pair]) -> list[tuple[torch.Tensor, ...]]:
    """The pairs that can be aligned, as ids."""
    left_out = set(too_long(run.task, run.model, pairs))
    device = next(run.model.parameters()).device
    found = []
    for number, (source, target) in enumerate(pairs):
        if number not in left_out and source.strip() and target.strip():
            row = run.task.encode({"source": source, "target": target})
            sides = (row[side] for side in ("source", "target", WORDS) if side in row)
            found.append(tuple(torch.tensor(side, device=device) for side in sides))
    return found
