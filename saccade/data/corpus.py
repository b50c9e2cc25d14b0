"""Which files a model learns from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from saccade.data.readers import Examples
from saccade.data.readers.examples import Files

MOST_HELD_OUT = 1000


class Corpus:
    """Files of examples for training and validation; see `saccade.data.readers.Examples` for their formats.

    Args:
        train: what to train on: pairs.tsv, .csv, .jsonl, .parquet, two text files as train.en,train.de, or a list.
        valid: what to validate with, in the same ways.
        held_out: where valid is left out, the share of the training examples, at most 1000, that validates instead.
        columns: which column plays which role, by name or number from 0, such as {source: en, target: de}.
        header: whether TSV and CSV files begin with a header; by default they do if a column is given by name.
        bad_rows: "error" stops at a row that cannot be used, "skip" leaves it out, counted and listed.
    """

    def __init__(
        self,
        *,
        train: list[str] | str | None = None,
        valid: list[str] | str | None = None,
        held_out: float = 0.05,
        columns: dict[str, str | int] | None = None,
        header: bool | None = None,
        bad_rows: Literal["error", "skip"] = "error",
    ) -> None:
        if not 0.0 <= held_out < 1.0:
            raise ValueError(f"held_out is a share, from 0 to less than 1, got {held_out}.")
        self.train = train
        self.valid = valid
        self.held_out = held_out
        self.columns = columns
        self.header = header
        self.bad_rows = bad_rows

    def read(self, files: Files, roles: Sequence[str]) -> Examples:
        """The examples of some files, read as the training files are."""
        columns = roles if self.columns is None else self.columns
        return Examples(files, columns, header=self.header, bad_rows=self.bad_rows)


class Share:
    """The examples that are held out for validation, or the others; the same ones each time.

    A hash of the example decides, so that equal examples stay together and no validation example was trained on.

    Args:
        examples: all of them; read again each time.
        held_out: the share that is held out, of which the first thousand are.
        validating: whether this is that share, or the rest.
    """

    def __init__(self, examples: Any, held_out: float, *, validating: bool) -> None:
        self.examples, self.held_out, self.validating = examples, held_out, validating

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        held: set[bytes] = set()
        for example in self.examples:
            mark = _mark(example)
            chosen = mark in held
            if not chosen and len(held) < MOST_HELD_OUT and int.from_bytes(mark) < self.held_out * 2**64:
                held.add(mark)
                chosen = True
            if chosen == self.validating:
                yield example

    @property
    def skipped(self) -> Any:
        """The bad rows that the last reading left out."""
        return self.examples.skipped

    def fingerprint(self) -> str:
        """Changes whenever the examples do."""
        return f"{self.examples.fingerprint()} without {self.held_out}"


def hold_out(examples: Any, share: float) -> tuple[Any, list[Mapping[str, Any]]]:
    """The examples without those that are held out (a list stays a list, a stream a stream), and these."""
    rest = Share(examples, share, validating=False)
    return list(rest) if isinstance(examples, list) else rest, list(Share(examples, share, validating=True))


def _mark(example: Mapping[str, Any]) -> bytes:
    text = json.dumps(example, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
