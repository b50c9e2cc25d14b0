"""The log of a training: one JSON object per line."""

import contextlib
import json
import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from saccade.artifacts import ArtifactError, JsonObject, keep_damaged, open_regular, parse_json, write_file

Record = dict[str, Any]
LONGEST = 2**20
"""Bytes in one line; ours have a few hundred."""


class MetricsLog:
    """`metrics.jsonl`: one line for each training step and each validation.

    A training that resumes after a crash cuts the log back to its checkpoint, so that every step appears once. If some
    lines are damaged, the others are kept, and the damaged file is kept as `metrics.jsonl.damaged`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def begin(self, step: int, validated: int | None = None) -> None:
        """Opens the log and keeps the records up to `step`, validations up to `validated`; 0 starts a new log."""
        last = {"train": step, "valid": step if validated is None else validated}
        content = _read(self.path)
        if content.damaged:
            aside = keep_damaged(self.path)
            warnings.warn(
                f"{self.path} has {_listed(content.damaged)}; the other lines are kept, and {aside} is a copy of the "
                "damaged file.",
                stacklevel=2,
            )
        kept = [record for record in content.records if record["step"] <= last.get(record["split"], step)]
        write_file(self.path, "".join(json.dumps(record) + "\n" for record in kept))
        try:
            self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise ArtifactError(error.errno, f"Could not open {self.path}: {error.strerror}") from error

    def write(self, record: Record) -> None:
        """Appends one record; numbers that are not finite become null, since JSON cannot represent them."""
        assert self._file is not None, "begin() opens the log"
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
        try:
            self._file.write(json.dumps(plain) + "\n")
            self._file.flush()
        except OSError as error:
            raise ArtifactError(error.errno, f"Could not write to {self.path}: {error.strerror}") from error

    def sync(self) -> None:
        """Waits until the log is on the disk: called before a checkpoint, which must never be ahead of the log."""
        assert self._file is not None, "begin() opens the log"
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise ArtifactError(error.errno, f"Could not write to {self.path}: {error.strerror}") from error

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # every record was flushed, or its failure was reported
                self._file.close()
            self._file = None


class _Content(NamedTuple):
    records: list[Record]
    damaged: list[int]
    """Numbers of damaged lines, counted from 1."""


def read_metrics(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a log. Damaged lines are left out with a warning, a last line cut short by a crash silently."""
    content = _read(Path(path))
    if content.damaged:
        warnings.warn(f"{path} has {_listed(content.damaged)}; only the other lines are read.", stacklevel=2)
    return content.records


def _read(path: Path) -> _Content:
    content = _Content([], [])
    cut: int | None = None
    for number, line in enumerate(_lines(path), start=1):
        if cut is not None:  # it was not the last line after all
            content.damaged.append(cut)
            cut = None
        try:
            content.records.append(_record(line, f"{path}, line {number},"))
        except ArtifactError:
            if line.endswith(b"\n"):
                content.damaged.append(number)
            else:
                cut = number
    return content


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, with overlong ones cut short; none if there is no file."""
    try:
        with open_regular(path) as file:
            while line := file.readline(LONGEST):
                yield line
                while not line.endswith(b"\n") and (line := file.readline(LONGEST)):
                    pass
    except FileNotFoundError:
        return


def _record(line: bytes, where: str) -> Record:
    record = JsonObject(parse_json(line, where, most_depth=2), where)
    record.take("split", str)
    record.take("step", int, least=0)
    for key, value in record.values.items():
        if key != "split":
            record.check(key, value, float, bool, type(None))
    return record.values


def _listed(lines: list[int]) -> str:
    shown = ", ".join(map(str, lines[:10])) + ", ..." * (len(lines) > 10)
    return f"1 damaged line ({shown})" if len(lines) == 1 else f"{len(lines)} damaged lines ({shown})"
