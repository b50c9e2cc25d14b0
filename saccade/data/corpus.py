"""Which files a model learns from."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from saccade.data.errors import BadRow, DataError, Skipped
from saccade.data.readers import Examples
from saccade.data.readers.columns import checked
from saccade.data.readers.examples import Files

IN_MEMORY = "the examples in memory"
HELD_OUT = 0.05
MOST_HELD_OUT = 1000
FEWEST_TO_HOLD_OUT = 100
"""Of fewer examples in memory none is spared, unless the user says so."""


class Corpus:
    """Files of examples for training and validation; see `saccade.data.readers.Examples` for their formats.

    Args:
        train: what to train on: pairs.tsv, .csv, .jsonl, .parquet, two text files as train.en,train.de, or a list.
        valid: what to validate with, in the same ways.
        held_out: where valid is left out, the share of the training examples, at most 1000, that validates instead; by
            default 0.05, but none of fewer than 100 examples in memory.
        columns: which column plays which role, by name or number from 0, such as {source: en, target: de}.
        header: whether TSV and CSV files begin with a header; by default they do if a column is given by name.
        bad_rows: "error" stops at a row that cannot be used, "skip" leaves it out, counted and listed.
    """

    def __init__(
        self,
        *,
        train: list[str] | str | None = None,
        valid: list[str] | str | None = None,
        held_out: float | None = None,
        columns: dict[str, str | int] | None = None,
        header: bool | None = None,
        bad_rows: Literal["error", "skip"] = "error",
    ) -> None:
        if held_out is not None and not 0.0 <= held_out < 1.0:
            raise ValueError(f"held_out is a share, from 0 to less than 1, got {held_out}.")
        self.train = train
        self.valid = valid
        self.held_out = held_out
        self.columns = columns
        self.header = header
        self.bad_rows = bad_rows

    def share(self, examples: Any) -> float:
        """Which share of the training examples, a list or a stream, is held out."""
        if self.held_out is not None:
            return self.held_out
        return 0.0 if isinstance(examples, Sequence) and len(examples) < FEWEST_TO_HOLD_OUT else HELD_OUT

    def take(self, rows: Iterable[Any], roles: Sequence[str]) -> list[Mapping[str, Any]]:
        """Examples in memory, dictionaries or tuples in the order of the roles, as careful as files are read."""
        taken = Taken()
        taken.skipped = Skipped()
        for number, row in enumerate(rows, start=1):
            try:
                taken.append(_taken(row, roles, number))
            except BadRow as bad:
                if self.bad_rows == "error":
                    raise
                taken.skipped.add(bad)
        return taken

    def read(self, files: Files, roles: Sequence[str]) -> Examples:
        """The examples of some files, read as the training files are."""
        given = self.columns and {role: c for role, c in self.columns.items() if role in roles or not roles}
        missing = [role for role in roles if given is not None and role not in given]
        if missing:
            raise DataError(
                f"data.columns does not say which column is the {' and which the '.join(missing)}. "
                f"The roles that it has: {', '.join(map(str, self.columns or ()))}."
            )
        return Examples(files, roles if given is None else given, header=self.header, bad_rows=self.bad_rows)


def _taken(row: Any, roles: Sequence[str], number: int) -> Mapping[str, Any]:
    if not isinstance(row, Mapping) and (isinstance(row, str) or len(row) != len(roles)):
        raise BadRow(IN_MEMORY, number, f"{row!r} is not a tuple of {' and '.join(roles)}", "Give one, or a dict.")
    example: Mapping[str, Any] = row if isinstance(row, Mapping) else dict(zip(roles, row, strict=True))
    for role in roles:
        if role not in example:
            has = ", ".join(map(str, example)) or "nothing"
            raise BadRow(IN_MEMORY, number, f"there is no {role!r}", f"It has: {has}.")
        if isinstance(example[role], str):
            checked(example[role], role, IN_MEMORY, number)
    return example


class Taken(list[Mapping[str, Any]]):
    """Examples in memory, with the bad ones that were left out."""

    skipped: Skipped


class Rest:
    """A stream of examples without those that are held out; read again each time."""

    def __init__(self, examples: Any, held: set[int]) -> None:
        self.examples, self.held = examples, held

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (example for example in self.examples if _mark(example) not in self.held)

    @property
    def skipped(self) -> Any:
        """The bad rows that the last reading left out."""
        return self.examples.skipped

    def fingerprint(self) -> str:
        """Changes whenever the examples do."""
        return f"{self.examples.fingerprint()} without {len(self.held)}"


def hold_out(examples: Any, share: float) -> tuple[Any, list[Mapping[str, Any]]]:
    """The examples without those that are held out (a list stays a list, a stream a stream), and these.

    The smallest hashes are held out: the same ones each time, whatever the order, and equal examples together, so that
    none that validates was trained on. At least one is, unless there is but one.
    """
    count = 0
    smallest: list[int] = []  # a heap of negated hashes: its first is the greatest that is kept
    known: set[int] = set()
    for example in examples:
        count += 1
        mark = _mark(example)
        if mark in known or (len(smallest) == MOST_HELD_OUT and mark > -smallest[0]):
            continue
        known.add(mark)
        heapq.heappush(smallest, -mark)
        if len(smallest) > MOST_HELD_OUT:
            known.discard(-heapq.heappop(smallest))
    wanted = max(1, round(share * count)) if share and len(known) > 1 else 0
    held = set(sorted(known)[: min(wanted, len(known) - 1)])
    rest: Any = Rest(examples, held)
    if isinstance(examples, list):
        rest = Taken(rest)
        rest.skipped = getattr(examples, "skipped", Skipped())
    return rest, [e for e in examples if _mark(e) in held]


def _mark(example: Mapping[str, Any]) -> int:
    text = json.dumps(example, sort_keys=True, default=str)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
