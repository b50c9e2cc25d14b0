"""Graph attention networks: the topics of the papers of Cora, from their words and citations.

The configuration `graphs/gat` as it is shipped, on the public split: 140 labelled nodes, 500 to stop by, 1,000 to test.
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

import saccade
from reproductions.report import markdown_table, publish
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
SPLITS = ("train", "valid", "test")
PUBLISHED = "83.0 ± 0.7"
"""Veličković et al. (2018), table 2: GAT on Cora, mean of 100 runs."""


def main(arguments: list[str] | None = None) -> int:
    """Trains one model per seed, tests it, and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m reproductions graphs", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORA"), help="cora.npz")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder for the table and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/graphs"), help="folder for the trained models")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--scores", nargs="+", choices=["gat", "gatv2"], default=["gat"])
    parser.add_argument("--steps", type=int, help="the most updates; by default, as in the configuration")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the graph of Cora. Set --data or CORA to cora.npz.", file=sys.stderr)
        return 0
    if not given.data.is_file():
        parser.error(f"There is no file {given.data}.")
    given.runs.mkdir(parents=True, exist_ok=True)
    files = write_splits(given.data, given.runs)
    results = {}
    for score in given.scores:
        seeds = [measured(score, seed, given.data, files, given.runs, given.steps) for seed in given.seeds]
        accuracies = [each["accuracy"] for each in seeds]
        spread = stdev(accuracies) if len(seeds) > 1 else 0.0
        results[score] = {"accuracy": fmean(accuracies), "deviation": spread, "seeds": seeds}
    header = ["score", "test accuracy, %", "seeds", "updates", "processor minutes per seed", "published"]
    rows = [
        [
            score,
            f"{result['accuracy']:.1f} ± {result['deviation']:.1f}",
            len(result["seeds"]),
            round(fmean(each["steps"] for each in result["seeds"])),
            fmean(each["minutes"] for each in result["seeds"]),
            PUBLISHED if score == "gat" else "",
        ]
        for score, result in results.items()
    ]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def write_splits(data: Path, folder: Path) -> dict[str, str]:
    """The nodes of each part of the public split with their labels, as CSV files."""
    files = {}
    with np.load(data, allow_pickle=False) as archive:
        labels = archive["labels"]
        for split in SPLITS:
            path = folder / f"{split}.csv"
            path.write_text("node,label\n" + "".join(f"{node},{labels[node]}\n" for node in archive[split].tolist()))
            files[split] = str(path)
    return files


def measured(score: str, seed: int, data: Path, files: dict[str, str], runs: Path, steps: int | None) -> dict[str, Any]:
    """Trains and tests one model."""
    folder = runs / f"{score}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    started = time.process_time()
    run = saccade.train(
        "graphs/gat",
        model={"score": score},
        data={"train": files["train"], "valid": files["valid"]},
        trainer={"seed": seed} | ({} if steps is None else {"max_steps": steps}),
        overrides={"task.inputs.node.graph": str(data)},
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    accuracy = run.evaluate(files["test"]).figures["accuracy"].value
    last = read_metrics(folder / "metrics.jsonl")[-1]["step"]
    print(f"{score}, seed {seed}: {accuracy:.1f} % after {last} updates", flush=True)
    return {"seed": seed, "accuracy": accuracy, "steps": last, "minutes": minutes}


if __name__ == "__main__":
    sys.exit(main())
