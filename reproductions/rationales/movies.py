"""Film reviews with the passages that people marked as the reasons for their labels (ERASER)."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor

import saccade
from saccade.evaluation.rationales import auprc, highest, iou_f1, positions_of, token_f1
from saccade.interpretation.attribution import label_gradient_times_input
from saccade.tasks import Example

SPLITS = {"train": "train", "valid": "val", "test": "test"}
COLUMNS = {"text": "text", "label": "label", "evidence": "evidence"}
EVIDENCE = {"class": "evidence", "unit": "words"}


def write_splits(archive: Path, folder: Path, most: int | None = None) -> dict[str, str]:
    """The reviews of each split, or the first of them, as JSON lines: text, label, and spans of words.

    Words are separated by spaces, sentences by line ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    with zipfile.ZipFile(archive) as packed:
        names = {Path(name).name: name for name in packed.namelist()}
        for split, name in SPLITS.items():
            rows = [json.loads(line) for line in packed.read(names[f"{name}.jsonl"]).decode().splitlines()][:most]
            lines = []
            for row in rows:
                text = packed.read(names[row["annotation_id"]]).decode()
                spans = [[each["start_token"], each["end_token"]] for group in row["evidences"] for each in group]
                lines.append(json.dumps({"text": text, "label": row["classification"], "evidence": spans}) + "\n")
            path = folder / f"{split}.jsonl"
            path.write_text("".join(lines), encoding="utf-8")
            files[split] = str(path)
    return files


def agreement(scores: Sequence[Sequence[float]], examples: Sequence[Example]) -> dict[str, float]:
    """The figures of a number for each word: as many words as people mark on average are a hard rationale."""
    gold = [example["evidence"] for example in examples]
    share = fmean(len(positions_of(spans)) / len(row) for spans, row in zip(gold, scores, strict=True))
    hard = [highest(row, share) for row in scores]
    return {
        "kept": 100.0 * share,
        "token_f1": token_f1(hard, gold).f1,
        "iou_f1": iou_f1(hard, gold).f1,
        "auprc": auprc(scores, gold),
    }


def at_random(examples: Sequence[Example], seed: int) -> list[list[float]]:
    """A random number for each word."""
    chance = random.Random(seed)
    return [[chance.random() for _ in example["text"].split()] for example in examples]


def by_gradient(run: saccade.Run, examples: Sequence[Example], batch_size: int = 16) -> list[list[float]]:
    """How strongly the answer depends on each word, for a model that reads words as they are."""
    found = []
    for start in range(0, len(examples), batch_size):
        several = examples[start : start + batch_size]
        batch = run.task.collate([run.task.prepare(run.model, example) for example in several])
        gradients: Tensor = label_gradient_times_input(run.model, *run.task.given(batch))
        for example, row in zip(several, gradients.tolist(), strict=True):
            found.append(row[: len(example["text"].split())])
    return found


def figures_of(run: saccade.Run, file: str) -> dict[str, Any]:
    """The figures of an evaluation that the table shows."""
    found = run.evaluate(file, batch_size=16).figures
    names = ("accuracy", "macro_f1", "kept", "token_f1", "token_precision", "token_recall", "iou_f1", "auprc")
    return {name: found[name].value for name in names if name in found}
