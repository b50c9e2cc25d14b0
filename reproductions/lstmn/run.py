"""LSTMN against LSTM, with as many parameters: the five grades of the Stanford Sentiment Treebank.

Both are the configuration `classification/lstmn` but for the encoder: two layers whose states are averaged. Settings were
chosen on the development sentences, which also decide when training stops; the test sentences are read once per model.
"""

import argparse
import gzip
import json
import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import saccade
from reproductions.report import markdown_table, publish
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "train", "valid": "dev", "test": "test"}
CONFIG = "classification/lstmn"
ENCODERS = {"lstm": "LSTM", "lstmn": "LSTMN"}
PUBLISHED = {"lstmn": "47.9 (unconfirmed)"}
"""Cheng et al. (2016): two layers of 168 units, with GloVe vectors and the labels of all phrases."""


def main(arguments: list[str] | None = None) -> int:
    """Trains one model per encoder and seed, tests it, and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m reproductions lstmn", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("SENTCLF"), help="folder with stsa.fine.train etc.")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder for the table and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/lstmn"), help="folder for the trained models")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--units", type=int, default=100, help="of a layer of the LSTMN; the LSTM gets as many parameters"
    )
    parser.add_argument("--steps", type=int, help="the most updates; by default, as in the configuration")
    given = parser.parse_args(arguments)
    if given.data is None:
        print(
            "Skipped: this needs stsa.fine.train, .dev and .test. Set --data or SENTCLF to their folder.",
            file=sys.stderr,
        )
        return 0
    try:
        examples = {split: read(given.data, name) for split, name in SPLITS.items()}
    except FileNotFoundError as error:
        parser.error(str(error))
    label = Counter(each["label"] for each in examples["train"]).most_common(1)[0][0]
    results: dict[str, Any] = {
        "majority": {
            "label": label,
            **{split: 100.0 * fmean(each["label"] == label for each in examples[split]) for split in ("valid", "test")},
        }
    }
    for encoder in ENCODERS:
        units = given.units if encoder == "lstmn" else same_size(given.units)
        seeds = [measured(encoder, units, seed, examples, given.runs, given.steps) for seed in given.seeds]
        results[encoder] = {key: fmean(each[key] for each in seeds) for key in ("valid", "test", "minutes")}
        results[encoder] |= {"units": units, "seeds": seeds, "parameters": seeds[0]["parameters"]}
    publish(given.output, results=results, table=table(results))
    return 0


def read(folder: Path, name: str) -> list[dict[str, str]]:
    """The sentences of one part, the grade first on each line."""
    places = [folder / f"stsa.fine.{name}", folder / f"stsa.fine.{name}.gz"]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"There is no stsa.fine.{name} in {folder}.")
    opened = gzip.open(found, "rt", encoding="utf-8") if found.suffix == ".gz" else found.open(encoding="utf-8")
    with opened as file:
        return [dict(zip(("label", "text"), line.rstrip("\n").split(" ", 1), strict=True)) for line in file]


def same_size(units: int) -> int:
    """How many units give an LSTM the parameters of an LSTMN, embeddings aside."""
    wanted = sum(p.numel() for p in network("lstmn", units).parameters())
    return min(range(units, 2 * units), key=lambda more: abs(_size(more) - wanted))


if __name__ == "__main__":
    sys.exit(main())
