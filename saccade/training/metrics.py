"""The log of a training: one JSON object a line."""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any, TextIO

from saccade.artifacts import ArtifactError, write_file

Record = dict[str, Any]


class MetricsLog:
    """`metrics.jsonl`: one line for each training step and one for each validation.

    A training that goes on after a crash cuts the log back to its checkpoint, so that no step is there twice.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def begin(self, step: int, validated: int | None = None) -> None:
        """Opens the log for what comes after `step`, and after the validation of `validated`; 0 begins a new one."""
        last = {"valid": step if validated is None else validated}
        kept = [
            record for record in read_metrics(self.path) if record["step"] <= last.get(record.get("split", ""), step)
        ]
        write_file(self.path, "".join(json.dumps(record) + "\n" for record in kept))
        self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 (closed by `close`)

    def write(self, record: Record) -> None:
        """Appends one record; what is not finite becomes null, which JSON has no numbers for."""
        assert self._file is not None, "begin() opens the log"
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
        try:
            self._file.write(json.dumps(plain) + "\n")
            self._file.flush()
        except OSError as error:
            raise ArtifactError(error.errno, f"Could not write to {self.path}: {error.strerror}") from error

    def sync(self) -> None:
        """Makes the log durable: called before a checkpoint, which must not be ahead of it."""
        assert self._file is not None, "begin() opens the log"
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # every record was flushed, or its failure told
                self._file.close()
            self._file = None


def read_metrics(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a log; a last line that a crash cut short is left out."""
    records: list[Record] = []
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return records
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            break
        if isinstance(record, dict) and "step" in record:
            records.append(record)
    return records
