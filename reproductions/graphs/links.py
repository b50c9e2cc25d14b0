"""Missing citations of Cora: nine tenths of the links are known, and the rest is told from pairs without a link."""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

import saccade
from saccade.training import read_metrics

PUBLISHED = {"cora": "91.0 (GAE)"}
"""AUROC: Kipf and Welling (2016), arXiv:1611.07308, table 1."""

SHARES = {"valid": 0.05, "test": 0.1}
"""Of the links, as in that paper."""


def measured(graph: str, seed: int, data: Path, runs: Path, steps: int | None, again: bool = True) -> dict[str, Any]:
    """Trains on most links and tests on others; or, unless `again`, takes the result of an earlier run."""
    folder = runs / f"{graph}-links-{seed}"
    kept = folder.with_suffix(".json")
    if kept.exists() and not again:
        earlier: dict[str, Any] = json.loads(kept.read_text())
        return earlier
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    links = split(data, seed)
    started = time.process_time()
    run = saccade.train(
        "graphs/link-prediction",
        data={"train": links["train"], "valid": links["valid"], "columns": None},
        trainer={"seed": seed} | ({} if steps is None else {"max_steps": steps}),
        overrides={"task.inputs.pair.graph": str(data)},
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    figures = run.evaluate(links["test"]).figures
    last = read_metrics(folder / "metrics.jsonl")[-1]["step"]
    result = {"seed": seed, "accuracy": figures["auroc"].value, "auprc": figures["auprc"].value}
    result |= {"steps": last, "minutes": minutes}
    print(f"{graph}, links, seed {seed}: AUROC {result['accuracy']:.1f} after {last} updates", flush=True)
    kept.write_text(json.dumps(result))
    return result


def split(data: Path, seed: int) -> dict[str, list[dict[str, str]]]:
    """The links of each part, each link once, whatever its direction."""
    with np.load(data, allow_pickle=False) as archive:
        edges = np.unique(np.sort(archive["edges"], axis=1), axis=0)
    links = [f"{one} {other}" for one, other in edges.tolist() if one != other]
    random.Random(seed).shuffle(links)
    parts, start = {}, 0
    for part, share in SHARES.items():
        end = start + round(share * len(links))
        parts[part], start = links[start:end], end
    parts["train"] = links[start:]
    return {part: [{"pair": link} for link in several] for part, several in parts.items()}
