"""The topics of papers, from their words and citations: Cora and Pubmed on the public split."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

import saccade
from saccade.training import read_metrics

SPLITS = ("train", "valid", "test")
PUBLISHED = {("cora", "gat"): "83.0 ± 0.7", ("pubmed", "gat"): "79.0 ± 0.3"}
"""Veličković et al. (2018), table 2, means of 100 runs."""

SETTINGS: dict[str, dict[str, Any]] = {
    "cora": {},
    "pubmed": {"model": {"output_heads": 8}, "trainer": {"learning_rate": 0.01, "weight_decay": 1e-3}},
}
"""What differs from the configuration `graphs/gat`, which is the paper's for Cora: section 3.3 of the paper."""


def measured(
    graph: str, score: str, seed: int, data: Path, runs: Path, steps: int | None, again: bool = True
) -> dict[str, Any]:
    """Trains and tests one model; or, unless `again`, takes the result of an earlier run."""
    folder = runs / f"{graph}-{score}-{seed}"
    kept = folder.with_suffix(".json")
    if kept.exists() and not again:
        earlier: dict[str, Any] = json.loads(kept.read_text())
        return earlier
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    files = write_splits(data, runs / graph)
    settings = SETTINGS[graph]
    # The loss alone decides when to stop: without the figures, which take longer than a step, training is the same.
    limits = {"seed": seed, "validate_examples": 0} | ({} if steps is None else {"max_steps": steps})
    started = time.process_time()
    run = saccade.train(
        "graphs/gat",
        model={"score": score, **settings.get("model", {})},
        data={"train": files["train"], "valid": files["valid"]},
        trainer={**settings.get("trainer", {}), **limits},
        overrides={"task.inputs.node.graph": str(data)},
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    accuracy = run.evaluate(files["test"]).figures["accuracy"].value
    last = read_metrics(folder / "metrics.jsonl")[-1]["step"]
    print(f"{graph}, {score}, seed {seed}: {accuracy:.1f} % after {last} updates", flush=True)
    result = {"seed": seed, "accuracy": accuracy, "steps": last, "minutes": minutes}
    kept.write_text(json.dumps(result))
    return result


def write_splits(data: Path, folder: Path) -> dict[str, str]:
    """The nodes of each part of the public split with their labels, as CSV files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    with np.load(data, allow_pickle=False) as archive:
        labels = archive["labels"]
        for split in SPLITS:
            path = folder / f"{split}.csv"
            path.write_text("node,label\n" + "".join(f"{node},{labels[node]}\n" for node in archive[split].tolist()))
            files[split] = str(path)
    return files
