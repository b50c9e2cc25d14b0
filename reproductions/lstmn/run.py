"""LSTMN against LSTM, with as many parameters: the five grades of the Stanford Sentiment Treebank.

Both are the configuration `classification/lstmn` but for the encoder: two layers whose states are averaged. The
development sentences decide when training stops; the test sentences are read once per model.
"""

import os
import sys
from pathlib import Path
from typing import Any

from reproductions.arguments import make_parser
from reproductions.classifying import averaged, majority, measured, read_lines
from reproductions.report import markdown_table, publish
from saccade.configuration import read_config
from saccade.models import AttentionPooling

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "train", "valid": "dev", "test": "test"}
CONFIG = "classification/lstmn"
ENCODERS = {"lstm": "LSTM", "lstmn": "LSTMN"}
PUBLISHED = {"lstmn": "47.9 (unconfirmed)"}
"""Cheng et al. (2016): two layers of 168 units, with GloVe vectors and the labels of all phrases."""


def main(arguments: list[str] | None = None) -> int:
    """Trains one model per encoder and seed, tests it, and writes the table."""
    parser = make_parser(FOLDER, __doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("SENTCLF"), help="folder with stsa.fine.train etc.")
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
    results: dict[str, Any] = {"majority": majority(examples)}
    for encoder in ENCODERS:
        units = given.units if encoder == "lstmn" else same_size(given.units)
        found = averaged(
            [
                measured(
                    given.runs / f"{encoder}-{units}-{seed}",
                    CONFIG,
                    examples,
                    seed=seed,
                    steps=given.steps,
                    model=model_of(encoder, units),
                )
                for seed in given.seeds
            ]
        )
        results[encoder] = {**found, "units": units, "parameters": size(encoder, units)}
    publish(given.output, results=results, table=table(results))
    return 0


def read(folder: Path, name: str) -> list[dict[str, str]]:
    """The sentences of one part, the grade first on each line."""
    lines = read_lines(folder, f"stsa.fine.{name}")
    return [dict(zip(("label", "text"), line.split(" ", 1), strict=True)) for line in lines]


def model_of(encoder: str, units: int) -> dict[str, Any]:
    """What differs from the configuration."""
    return {"encoder": encoder, "hidden_dim": units}


def size(encoder: str, units: int) -> int:
    """How many parameters a model has, embeddings of words aside."""
    plan = read_config(CONFIG)["model"]
    arguments = {name: value for name, value in plan.items() if name != "class"} | model_of(encoder, units)
    model = AttentionPooling(vocab=1, classes=5, **arguments)
    return sum(parameter.numel() for parameter in model.parameters())


def same_size(units: int) -> int:
    """How many units give an LSTM the parameters of an LSTMN of so many."""
    wanted = size("lstmn", units)
    return min(range(units, 2 * units), key=lambda more: abs(size("lstm", more) - wanted))


def table(results: dict[str, Any]) -> str:
    """A row for each encoder, below that of the majority class."""
    header = ["encoder", "units", "accuracy, development, %", "accuracy, test, %", "seeds"]
    header += ["parameters without word vectors", "processor minutes per seed", "published"]
    rows: list[list[object]] = []
    for name, found in results.items():
        if name == "majority":
            rows.append([f"always grade {found['label']}", "", found["valid"], found["test"], "", "", "", ""])
            continue
        tested = " ".join(f"{each['test']:.1f}" for each in found["seeds"])
        row = [ENCODERS[name], found["units"], found["valid"], found["test"], tested, found["parameters"]]
        rows.append([*row, found["minutes"], PUBLISHED.get(name, "")])
    return markdown_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
