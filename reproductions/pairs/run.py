"""Pairs of texts: entailment in SICK, with word-by-word attention and with LSTMNs of shallow and deep fusion.

Settings were chosen on the trial pairs, which also decide when training stops; the test pairs are read once per model.
"""

import argparse
import csv
import gzip
import json
import os
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import saccade
from reproductions.report import markdown_table, publish
from saccade.interpretation.plots import plot_attention
from saccade.training import read_metrics

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
        needs: the arguments of `saccade.train` that the command line must give, such as `init_from`.
        published: a published accuracy and its corpus, for context.
    """

    name: str
    config: str
    arguments: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    published: str = ""


ENTRIES = {
    "word_by_word": Entry("word-by-word attention", "classification/pairs"),
    "shallow": Entry(
        "LSTMN, shallow fusion",
        "classification/pairs-lstmn",
        {"model": {"fusion": "shallow"}},
        published="86.0 (SNLI)",
    ),
    "deep": Entry("LSTMN, deep fusion", "classification/pairs-lstmn", published="86.3 (SNLI)"),
}
"""The published figures are those of Cheng et al. (2016), on a corpus a hundred times as large."""


def main(arguments: list[str] | None = None) -> int:
    """Trains one model per row and seed, tests it, and writes the table and a plot of attention."""
    parser = argparse.ArgumentParser(prog="python -m reproductions pairs", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("SICK"), help="SICK.txt, or the folder that has it")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder for the table, plot and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/pairs"), help="folder for the trained models")
    parser.add_argument("--models", nargs="+", choices=ENTRIES, help="by default, all that need nothing more")
    parser.add_argument("--init-from", help="the folder of a pre-trained model, for models that need one")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, help="the most updates; by default, as in the configurations")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the corpus SICK. Set --data or SICK to SICK.txt or its folder.", file=sys.stderr)
        return 0
    try:
        examples = read(given.data)
    except FileNotFoundError as error:
        parser.error(str(error))
    extra = {} if given.init_from is None else {"init_from": given.init_from}
    ready = [name for name, entry in ENTRIES.items() if extra.keys() >= set(entry.needs)]
    names = given.models or ready
    for name in names:
        if name not in ready:
            parser.error(f"{name} needs --{' --'.join(ENTRIES[name].needs).replace('_', '-')}.")
    results: dict[str, Any] = {"majority": majority(examples)}
    for name in names:
        entry = ENTRIES[name]
        added = {argument: extra[argument] for argument in entry.needs}
        seeds = [measured(name, seed, examples, given.runs, given.steps, added) for seed in given.seeds]
        results[name] = {key: fmean(each[key] for each in seeds) for key in ("valid", "test", "minutes")}
        results[name] |= {"seeds": seeds, "parameters": seeds[0]["parameters"]}
    publish(given.output, results=results, table=table(results))
    drawn = examples["test"][min(DRAWN, len(examples["test"]) - 1)]
    draw(names, given.seeds[0], drawn, given.runs, given.output / "attention.png")
    return 0


def read(data: Path) -> dict[str, list[dict[str, str]]]:
    """The pairs of each part of SICK."""
    places = [data] if data.is_file() else [data / "SICK.txt", data / "SICK.txt.gz"]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"There is no SICK.txt in {data}.")
    opened = gzip.open(found, "rt", encoding="utf-8") if found.suffix == ".gz" else found.open(encoding="utf-8")
    with opened as file:
        rows = [
            {name: (cell or "").strip() for name, cell in row.items()}
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    return {
        split: [{role: row[column] for role, column in COLUMNS.items()} for row in rows if row["SemEval_set"] == part]
        for split, part in SPLITS.items()
    }


def majority(examples: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    """The accuracy of always answering the most frequent label of the training pairs."""
    label = Counter(each["label"] for each in examples["train"]).most_common(1)[0][0]
    shares = {
        split: 100.0 * sum(each["label"] == label for each in examples[split]) / len(examples[split])
        for split in ("valid", "test")
    }
    return {"label": label, **shares}


def measured(
    name: str, seed: int, examples: dict[str, Any], runs: Path, steps: int | None, added: dict[str, Any]
) -> dict[str, Any]:
    """Trains and tests one model, unless its folder says that this was done."""
    folder, entry = runs / f"{name}-{seed}", ENTRIES[name]
    kept = folder / "measured.json"
    if kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    shutil.rmtree(folder, ignore_errors=True)  # interrupted
    started = time.process_time()
    run = saccade.train(
        entry.config,
        **entry.arguments,
        **added,
        data={"train": examples["train"], "valid": examples["valid"]},
        trainer={"seed": seed} | ({} if steps is None else {"max_steps": steps}),
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    figures = {split: run.evaluate(examples[split]).figures["accuracy"].value for split in ("valid", "test")}
    found = {
        "seed": seed,
        **figures,
        "minutes": minutes,
        "steps": read_metrics(folder / "metrics.jsonl")[-1]["step"],
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
    }
    kept.write_text(json.dumps(found))
    print(f"{name}, seed {seed}: {found}", flush=True)
    return found


def table(results: dict[str, Any]) -> str:
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
    drawings = []
    for name in names:
        (item,) = saccade.load(runs / f"{name}-{seed}").explain([example])
        across = [each for each in item.maps if each.queries.names != each.keys.names]
        drawings.append((across[-1].weights.mean(0), across[-1].keys.names, across[-1].queries.names))
    plot_attention(drawings, picture, names=[ENTRIES[name].name for name in names])


if __name__ == "__main__":
    sys.exit(main())
