"""The origin of a model: the data it was trained on, and every command that trained it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shlex
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import saccade
from saccade.artifacts import ArtifactError, JsonObject, keep_damaged, read_json, write_file

FILE = "provenance.json"
LIBRARIES = ("torch", "tokenizers", "accelerate", "datasets", "sacrebleu", "Babel")


class Start(NamedTuple):
    """One start of a training: the first, or a resumption."""

    command: str
    versions: dict[str, str]


class Provenance(NamedTuple):
    """The data of a training, and how it was started and resumed."""

    sources: dict[str, str]
    """The origin of the training and validation examples."""
    train: int
    """The number of training examples."""
    valid: int
    """The number of validation examples."""
    left_out: dict[str, int]
    """The number of examples left out, by the reason."""
    skipped: int
    """The number of bad rows."""
    starts: list[Start]
    """In order, the first start first."""
    truncated: dict[str, int] = {}  # noqa: RUF012 (never written to)
    """The number of examples of which only the beginning is read, by the reason."""
    weights: str = ""
    """The folder whose weights the model started from; empty if there was none."""

    def save(self, folder: Path) -> None:
        """Writes it next to the configuration."""
        content = {**self._asdict(), "starts": [start._asdict() for start in self.starts]}
        write_file(folder / FILE, json.dumps(content, ensure_ascii=False, indent=2) + "\n")

    @staticmethod
    def read(folder: Path) -> Provenance | None:
        """The record of earlier starts, if there is one.

        It is for information only, so a damaged one does not stop a training: it is kept as `provenance.json.damaged`,
        with a warning that names what is wrong, and a new record begins.
        """
        try:
            return _checked(JsonObject(read_json(folder / FILE), str(folder / FILE)))
        except FileNotFoundError:
            return None
        except ArtifactError as error:
            kept = keep_damaged(folder / FILE)
            warnings.warn(f"{error} A new record begins; {kept} is a copy of the old one.", stacklevel=2)
            return None


def _checked(noted: JsonObject) -> Provenance:
    noted.only(Provenance._fields)
    _texts(noted.inner("sources"))
    for name in ("train", "valid", "skipped"):
        noted.take(name, int, least=0)
    for name, default in (("truncated", {}), ("weights", "")):  # records of earlier versions lack them
        noted.values.setdefault(name, default)
    noted.take("weights", str)
    for name in ("left_out", "truncated"):
        counts = noted.inner(name)
        for reason in counts.values:
            counts.take(reason, int, least=0)
    starts = []
    for place, values in enumerate(noted.take_list("starts", dict)):
        start = JsonObject(values, noted.where, f"starts[{place}]")
        start.only(Start._fields)
        starts.append(Start(start.take("command", str), _texts(start.inner("versions"))))
    return Provenance(**{**noted.values, "starts": starts})


def _texts(document: JsonObject) -> dict[str, str]:
    for key in document.values:
        document.take(key, str)
    return document.values


def this_start() -> Start:
    """The command of this process, if it is one of Saccade's, and the versions of the libraries."""
    program = Path(sys.argv[0]).name
    ours = program in ("saccade", "__main__.py")
    command = shlex.join(["saccade", *sys.argv[1:]]) if ours else "saccade.train(...) in Python"
    versions = {"Python": platform.python_version(), "saccade": saccade.__version__}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Start(command, versions)
