"""What an output folder belongs to, and which of its blocks are complete, so that a second call continues the first."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from saccade.artifacts import ArtifactError, JsonObject, read_json, write_file
from saccade.artifacts.documents import parse_json
from saccade.bulk.blocks import Block
from saccade.data.readers import FilePart

# Arrow, Spark and Ray leave out files whose names begin so when they read a folder of Parquet files.
MANIFEST, DONE = "_manifest.json", "_done.jsonl"


@dataclass(frozen=True)
class Done:
    """A block whose output file is complete."""

    block: int
    rows: int
    """Of the output."""
    bytes: int
    """The size of the output file."""
    skipped: int = 0
    """Rows that could not be used."""
    bad: list[str] = field(default_factory=list)
    """The first of these, with file and line."""
    truncated: int = 0
    """Inputs that were too long and were truncated."""
    strange: int = 0
    """Inputs with parts that do not occur in the training data."""


class Manifest:
    """The record of one bulk prediction in its output folder.

    Args:
        folder: the output.
        files: the inputs, in order.
        settings: everything the output depends on, in JSON's types: model, options, inputs.
    """

    def __init__(self, folder: Path, files: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.folder, self.files = folder, list(files)
        self.settings = json.loads(json.dumps(settings))
        self.done: dict[int, Done] = {}

    def open(self, plan: Iterator[Block]) -> list[Block]:
        """The blocks, planned now or read from the folder; raises if the folder is the output of something else."""
        path = self.folder / MANIFEST
        if not path.exists():
            others = [each.name for each in self.folder.iterdir() if not each.name.startswith(".")]
            if others:
                raise FileExistsError(
                    f"{self.folder} is not empty (it contains {others[0]}) and has no {MANIFEST}: choose another one."
                )
            blocks = list(plan)
            places = {file: place for place, file in enumerate(self.files)}
            parts = [[places[block.file], *block.part] for block in blocks]
            write_file(path, json.dumps({**self.settings, "blocks": parts}) + "\n")
            return blocks
        document = JsonObject(read_json(path), str(path))
        for name, wanted in self.settings.items():
            found = document.values.get(name)
            if found != wanted:
                raise FileExistsError(
                    f"{self.folder} has predictions with another {name}: {_shown(found, wanted)}. To continue them, "
                    "give the same model, data and options; otherwise choose another folder."
                )
        blocks = []
        for number, values in enumerate(document.take_list("blocks", list)):
            where = f"blocks[{number}]"
            if len(values) != 4:
                raise document.wrong(where, "must have four values")
            for value in values:
                document.check(where, value, int, least=0)
            document.check(where, values[0], int, most=len(self.files) - 1)
            blocks.append(Block(number, self.files[values[0]], FilePart(*values[1:])))
        self._read_done(blocks)
        return blocks

    def add(self, done: Done) -> None:
        """Notes a finished block, so that it stays noted after a crash."""
        with open(self.folder / DONE, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(done), ensure_ascii=True) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.done[done.block] = done

    def _read_done(self, blocks: Sequence[Block]) -> None:
        """The recorded blocks whose output files are complete; a crash may have cut off the last line."""
        path = self.folder / DONE
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                write_file(path, b"".join(lines[:-1]))
                break
            found = JsonObject(parse_json(line, f"{path}, line {number}"), f"{path}, line {number}")
            found.only(Done.__dataclass_fields__)
            for name in Done.__dataclass_fields__:
                found.take_list(name, str) if name == "bad" else found.take(name, int, least=0)
            done = Done(**found.values)
            if done.block >= len(blocks):
                raise ArtifactError(f"{path} is damaged: line {number} names block {done.block} of {len(blocks)}.")
            output = blocks[done.block].output(self.folder)
            if not done.rows or (output.is_file() and output.stat().st_size == done.bytes):
                self.done[done.block] = done


def _shown(found: Any, wanted: Any) -> str:
    """What differs, in short."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in {**found, **wanted}:
            if found.get(key) != wanted.get(key):
                return f"{key} was {found.get(key)!r:.80}, now {wanted.get(key)!r:.80}"
    return f"it was {found!r:.80}, now {wanted!r:.80}"
