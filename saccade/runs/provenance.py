"""How a model was made: its data, and every command that took part."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import saccade
from saccade.artifacts import write_file

FILE = "provenance.json"
LIBRARIES = ("torch", "tokenizers", "accelerate", "datasets", "sacrebleu", "Babel")


class Start(NamedTuple):
    """One start of a training: the first, or a resumption."""

    command: str
    versions: dict[str, str]


class Provenance(NamedTuple):
    """What a model learnt from, and how its training was started and resumed."""

    sources: dict[str, str]
    """Where the training and the validation examples came from."""
    train: int
    """How many examples it was trained on."""
    valid: int
    """How many it was validated with."""
    left_out: dict[str, int]
    """Why examples were left out, and how many."""
    skipped: int
    """How many rows were bad."""
    starts: list[Start]
    """The first one first."""

    def save(self, folder: Path) -> None:
        """Writes it beside the configuration."""
        content = {**self._asdict(), "starts": [start._asdict() for start in self.starts]}
        write_file(folder / FILE, json.dumps(content, ensure_ascii=False, indent=2) + "\n")

    @staticmethod
    def read(folder: Path) -> Provenance | None:
        """What an earlier start noted, if there was one."""
        if not (folder / FILE).is_file():
            return None
        noted = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return Provenance(**{**noted, "starts": [Start(**start) for start in noted["starts"]]})


def this_start() -> Start:
    """How this process was started, as far as that is a command of Saccade's, and with which versions."""
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
