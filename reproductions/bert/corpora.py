"""The texts of this reproduction: questions and sentences with labels, and raw text."""

import gzip
import io
import random
from pathlib import Path

Labelled = list[dict[str, str]]
"""Examples with `text` and `label`."""

SPEECHES = 20
"""How many speeches of a play make a document."""


def trec(data: Path, seed: int = 1) -> dict[str, Labelled]:
    """Questions with six kinds of answers; a tenth of the training questions is set aside to validate on."""
    train = _lines(data / "sentclf" / "TREC.train.all.gz", "latin-1")
    random.Random(seed).shuffle(train)
    dev = len(train) // 10
    return {"train": train[dev:], "dev": train[:dev], "test": _lines(data / "sentclf" / "TREC.test.all.gz", "latin-1")}


def sst2(data: Path) -> dict[str, Labelled]:
    """Sentences of film reviews, good or bad, in the published split; whole sentences only, no phrases."""
    return {part: _lines(data / "sentclf" / f"stsa.binary.{part}.gz", "utf-8") for part in ("train", "dev", "test")}


def raw_text(data: Path) -> list[dict[str, str]]:
    """Documents to pre-train on: plays, some speeches of each, and descriptions of pictures, each by itself."""
    plays = (data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8").split("\n\n")
    speeches = [" ".join(speech.split()) for speech in plays]
    documents = ["\n".join(speeches[start : start + SPEECHES]) for start in range(0, len(speeches), SPEECHES)]
    with gzip.open(data / "multi30k" / "train.en.gz", "rt", encoding="utf-8") as file:
        documents += [line.strip() for line in file if line.strip()]
    return [{"text": document} for document in documents]


def _lines(path: Path, encoding: str) -> Labelled:
    """Lines that begin with their label."""
    with io.TextIOWrapper(gzip.open(path), encoding=encoding) as file:
        found = [line.strip().partition(" ") for line in file]
    return [{"text": text, "label": label} for label, _, text in found]
