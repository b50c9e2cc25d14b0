"""Which files a model learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from saccade.data.readers import Examples
from saccade.data.readers.examples import Files


class Corpus:
    """Files of examples for training and validation; see `saccade.data.readers.Examples` for their formats.

    Args:
        train: what to train on: pairs.tsv, .csv, .jsonl, .parquet, two text files as train.en,train.de, or a list.
        valid: what to validate with, in the same ways.
        columns: which column plays which role, by name or number from 0, such as {source: en, target: de}.
        header: whether TSV and CSV files begin with a header; by default they do if a column is given by name.
        bad_rows: "error" stops at a row that cannot be used, "skip" leaves it out, counted and listed.
    """

    def __init__(
        self,
        *,
        train: list[str] | str | None = None,
        valid: list[str] | str | None = None,
        columns: dict[str, str | int] | None = None,
        header: bool | None = None,
        bad_rows: Literal["error", "skip"] = "error",
    ) -> None:
        self.train = train
        self.valid = valid
        self.columns = columns
        self.header = header
        self.bad_rows = bad_rows

    def read(self, files: Files, roles: Sequence[str]) -> Examples:
        """The examples of some files, read as the training files are."""
        columns = roles if self.columns is None else self.columns
        return Examples(files, columns, header=self.header, bad_rows=self.bad_rows)
