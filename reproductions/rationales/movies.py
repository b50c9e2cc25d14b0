"""Film reviews with the passages that people marked as the reasons for their labels (ERASER)."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor

import saccade
from reproductions.report import markdown_table
from saccade.evaluation.rationales import auprc, highest, iou_f1, positions_of, token_f1
from saccade.interpretation.attribution import label_gradient_times_input
from saccade.interpretation.plots import plot_lines
from saccade.tasks import Example

SPLITS = {"train": "train", "valid": "val", "test": "test"}
COLUMNS = {"text": "text", "label": "label", "evidence": "evidence"}
EVIDENCE = {"class": "evidence", "unit": "words"}

WORDS = {"class": "pretokenised", "vocab_size": 20000, "min_frequency": 2}
TEXT = {"class": "text", "tokeniser": WORDS, "max_length": 1500}
SMALL = {"embedding_dim": 64, "hidden_dim": 64}
TRAINER = {"max_epochs": 5, "batch_tokens": 16384, "learning_rate": 2e-3, "schedule": "constant", "patience": None}
PICKING = {**TRAINER, "max_epochs": 4}
SHARES = (0.05, 0.1, 0.2, 0.3)
"""The shares of words that models keep."""
COHERENCE = 0.0005
"""The cost of a beginning or an end, which the validation reviews preferred to 0.002."""

ROWS: dict[str, dict[str, Any]] = {
    "attention": {"config": "classification/pooling", "text": TEXT, "model": SMALL, "trainer": TRAINER},
    **{
        f"picks {share:.0%} of the words": {
            "config": "classification/rationale",
            "text": {**TEXT, "vectors": "word2vec"},
            "model": {**SMALL, "share": share, "coherence": COHERENCE},
            "trainer": PICKING,
        }
        for share in SHARES
    },
    "pays 0.001 for each word": {
        "config": "classification/rationale",
        "text": TEXT,
        "model": {**SMALL, "share": None, "pooling": "last", "sparsity": 0.001, "coherence": 0.002},
        "trainer": TRAINER,
    },
    "HAN": {
        "config": "classification/han",
        "text": {"class": "document", "tokeniser": WORDS, "sentences": "lines"},
        "model": {},
        "trainer": TRAINER,
    },
    "MiniLM, attention": {
        "config": "classification/bert",
        "text": {"class": "wordpieces", "max_length": 256, "cut": "middle"},
        "model": {"pooling": "attention"},
        "trainer": {"max_epochs": 1, "batch_tokens": 2048},
    },
}
"""Each model: its configuration, the field that reads reviews, and what differs from the configuration."""

SWEPT = "picks"
"""How the names of the models begin that keep a given share of words."""

MINILM = "MiniLM, attention"
"""The one that starts from pre-trained weights."""

PUBLISHED = "DeYoung et al. (2020): Lei et al.'s model 0.285 token F1; attention of a BERT and LSTM 0.417 AUPRC."


def write_splits(archive: Path, folder: Path, most: int | None = None) -> dict[str, str]:
    """The reviews of each split, or so many of them, as JSON lines: text, label, and spans of words.

    Words are separated by spaces, sentences by line ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    with zipfile.ZipFile(archive) as packed:
        names = {Path(name).name: name for name in packed.namelist()}
        for split, name in SPLITS.items():
            rows = [json.loads(line) for line in packed.read(names[f"{name}.jsonl"]).decode().splitlines()]
            rows = rows[:: max(1, len(rows) // most)][:most] if most else rows  # they are sorted by label
            lines = []
            for row in rows:
                text = packed.read(names[row["annotation_id"]]).decode()
                marked = [(each["start_token"], each["end_token"]) for group in row["evidences"] for each in group]
                spans = [span for span in marked if span[0] < span[1]]  # a few are empty
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
            words = len(example["text"].split())
            found.append([*row[:words], *[0.0] * (words - len(row))])  # what it did not read
    return found


def figures_of(run: saccade.Run, file: str) -> dict[str, Any]:
    """The figures of an evaluation that the table shows."""
    found = run.evaluate(file, batch_size=16).figures
    names = ("accuracy", "macro_f1", "kept", "token_f1", "token_precision", "token_recall", "iou_f1", "auprc")
    return {name: found[name].value for name in names if name in found}


def chosen_on_validation(found: Mapping[str, Any]) -> str:
    """The model of the sweep that agrees best with people on the validation reviews."""
    swept = [name for name in found if name.startswith(SWEPT)]
    return max(swept, key=lambda name: found[name]["valid"]["token_f1"])


def table(found: Mapping[str, Any]) -> str:
    """A row for each model, random scores and gradients; published figures below."""
    header = ["model", "accuracy, %", "words kept, %", "token F1", "IOU F1", "AUPRC", "processor minutes"]

    def row(name: str, r: Mapping[str, Any], minutes: float | str) -> list[object]:
        kept = r.get("kept", "all")
        scores = [f"{r[key]:.3f}" for key in ("token_f1", "iou_f1", "auprc")]
        return [name, r.get("accuracy", ""), kept, *scores, minutes]

    rows = []
    if "attention" in found:
        rows.append(row("random", found["attention"]["random"], ""))
        rows.append(row("gradient of the model with attention", found["attention"]["gradient"], ""))
    chosen = chosen_on_validation(found) if any(name.startswith(SWEPT) for name in found) else ""
    for name, results in found.items():
        rows.append(row(f"**{name}**" if name == chosen else name, results["test"], results["minutes"]))
    return markdown_table(header, rows) + f"\n{PUBLISHED}\n"


def plot(found: Mapping[str, Any], output: Path) -> None:
    """Accuracy and agreement with people against the share of words kept."""
    swept = sorted(
        (results["test"] for name, results in found.items() if name.startswith(SWEPT)), key=lambda r: float(r["kept"])
    )
    if not swept:
        return
    shares = [r["kept"] for r in swept]
    lines = {
        "accuracy": (shares, [r["accuracy"] for r in swept]),
        "token F1, %": (shares, [100.0 * r["token_f1"] for r in swept]),
        "AUPRC, %": (shares, [100.0 * r["auprc"] for r in swept]),
    }
    plot_lines(lines, output / "movies.png", x="share of words kept, %", y="%")
