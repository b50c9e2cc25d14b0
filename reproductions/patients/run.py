"""RETAIN beside a GRU and logistic regression, on records of visits: real, synthetic, and made up with known effects.

Each model reads the same records and is trained by its shipped configuration, with the sizes and steps given here.
"""

import argparse
import json
import os
import shutil
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import saccade
from reproductions.arguments import make_parser
from reproductions.patients.counts import fitted
from reproductions.patients.records import Files, diabetes, mortality, next_diagnoses, simulated, synthea, write
from reproductions.report import earlier, markdown_table, publish
from saccade.evaluation.correlation import spearman
from saccade.training import read_metrics

FOLDER = Path(__file__).resolve().parent
MODELS = ("retain", "gru", "transformer", "logistic", "scikit-learn")
TITLES = {
    "simulated": "made-up risk",
    "diabetes": "readmission within 30 days (UCI diabetes)",
    "mortality": "death within a year (Synthea)",
    "diagnoses": "next diagnoses (Synthea)",
}
SMALL = {"embedding_dim": 32, "hidden_dim": 32, "dropout": 0.1}
SETTINGS: dict[str, dict[str, Any]] = {
    "simulated": {"steps": 1000, "batch": 1500, "every": 100, "rate": 3e-3, "sizes": SMALL},
    "diabetes": {"steps": 400, "batch": 2000, "every": 50, "rate": 1e-3, "sizes": {}},
    "mortality": {"steps": 200, "batch": 2000, "every": 20, "rate": 1e-3, "sizes": {}},
    "diagnoses": {"steps": 4000, "batch": 500, "every": 100, "rate": 1e-3, "sizes": {}, "rates": {"retain": 3e-3}},
}
"""The most updates, visits a batch, updates between validations, learning rate, and what differs from it and from the
shipped sizes."""


def main(arguments: list[str] | None = None) -> int:
    """Trains and tests the models on the data at hand, and writes the table."""
    parser = make_parser(FOLDER, __doc__, models=MODELS)
    parser.add_argument("--diabetes", type=Path, default=os.environ.get("UCI_DIABETES"), help="dataset_diabetes.zip")
    parser.add_argument("--synthea", type=Path, default=os.environ.get("SYNTHEA"), help="folder of Synthea's tables")
    parser.add_argument("--only", nargs="+", choices=list(TITLES), default=list(TITLES))
    parser.add_argument("--steps", type=int, help="the most updates; by default those of each task")
    parser.add_argument("--records", type=int, default=30_000, help="how many made-up records")
    parser.add_argument("--bootstrap", type=int, default=500, help="resamplings for the intervals")
    given = parser.parse_args(arguments)
    files = prepared(given)
    results = earlier(given.output)
    for task, found in files.items():
        for model in given.models:
            results.setdefault(task, {})[model] = measured(task, model, found, given)
            publish(given.output, results=results, table=tabulated(results))
    return 0


def prepared(given: argparse.Namespace) -> dict[str, Files]:
    """The records of each task whose data are at hand."""
    files: dict[str, Files] = {}
    whole, each = ({"class": name, "positive": "yes"} for name in ("label", "visit_label"))
    if "simulated" in given.only:
        files["simulated"] = write(list(simulated(given.records)), given.runs / "simulated", whole)
    for name, option in (("diabetes", given.diabetes), ("synthea", given.synthea)):
        wanted = {"diabetes": {"diabetes"}, "synthea": {"mortality", "diagnoses"}}[name] & set(given.only)
        if wanted and option is None:
            print(f"Skipped {' and '.join(sorted(wanted))}: this needs --{name}.", file=sys.stderr)
        elif wanted and not Path(option).exists():
            sys.exit(f"There is no {option}.")
        elif name == "diabetes" and wanted:
            files["diabetes"] = write(list(diabetes(option)), given.runs / "diabetes", each)
        elif wanted:
            patients = synthea(option)
            if "mortality" in wanted:
                files["mortality"] = write(list(mortality(patients)), given.runs / "mortality", each)
            if "diagnoses" in wanted:
                several = {"class": "visit_labels"}
                files["diagnoses"] = write(list(next_diagnoses(patients)), given.runs / "diagnoses", several)
    return files


def measured(task: str, model: str, files: Files, given: argparse.Namespace) -> dict[str, Any]:
    """Trains and tests one model, unless its folder says that this was done."""
    if model == "scikit-learn":
        return fitted(files.paths, given.bootstrap)
    folder = given.runs / f"{task}-{model}"
    kept = folder / "measured.json"
    if kept.is_file():
        done: dict[str, Any] = json.loads(kept.read_text())
        return done
    shutil.rmtree(folder, ignore_errors=True)  # interrupted
    settings = SETTINGS[task]
    sizes = dict(settings["sizes"])
    if model == "transformer" and sizes:
        sizes = {"dim": sizes["embedding_dim"], "dropout": sizes["dropout"]}
    rate = {"logistic": 10.0, "transformer": 0.5}.get(model, 1.0) * settings["rate"]
    rate = settings.get("rates", {}).get(model, rate)
    started = time.process_time()
    run = saccade.train(
        f"patients/{model}",
        model={} if model == "logistic" else sizes,
        data={"train": files.paths["train"], "valid": files.paths["valid"]},
        trainer={
            "max_steps": given.steps or settings["steps"],
            "validate_every": min(settings["every"], given.steps or settings["every"]),
            "validate_examples": 2000,
            "batch_tokens": settings["batch"],
            "learning_rate": rate,
        },
        overrides={f"task.label.{name}": value for name, value in files.label.items()},
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    found = run.evaluate(files.paths["test"], metrics=["auroc", "auprc", "ece"], bootstrap=given.bootstrap)
    figures = {name: {"value": each.value, "interval": each.interval} for name, each in found.figures.items()}
    last = read_metrics(folder / "metrics.jsonl")[-1]["step"]
    result = {"figures": figures, "examples": found.examples, "steps": last, "minutes": minutes}
    if task == "simulated" and model in ("retain", "logistic"):
        result["correlation"] = agreement(run, files.paths["test"])
    kept.write_text(json.dumps(result))
    print(f"{task}, {model}: {result}", flush=True)
    return result


def agreement(run: Any, path: str, most: int = 500) -> dict[str, float]:
    """The rank correlation of what codes contribute to the log-odds with what they truly do: of all, and by record."""
    records = [json.loads(line) for line in Path(path).read_text().splitlines()[:most]]
    found, true, within = [], [], []
    for record, item in zip(records, run.explain([each["record"] for each in records]), strict=True):
        contributions = item.maps[0].contributions[0]
        place = contributions.outcomes.index("yes")
        own = torch.cat([codes[:, place] for codes in contributions.codes]).double()
        truth = torch.tensor([effect for visit in record["truth"] for effect in visit], dtype=torch.double)
        within.append(float(spearman(own, truth)))
        found.append(own)
        true.append(truth)
    return {"all": float(spearman(torch.cat(found), torch.cat(true))), "within records": float(np.mean(within))}


def tabulated(results: dict[str, Any]) -> str:
    """The table of all results."""
    header = ["outcome", "model", "AUROC, %", "AUPRC, %", "ECE, %", "rank correlation", "updates", "processor minutes"]
    rows = []
    for task, model in product(TITLES, MODELS):
        if model in results.get(task, {}):
            result = results[task][model]
            shown = [_interval(result["figures"][name]) for name in ("auroc", "auprc", "ece")]
            right = result.get("correlation")
            agreed = "" if right is None else f"{right['all']:.3f}"
            rows.append([TITLES[task], model, *shown, agreed, result["steps"], result["minutes"]])
    return markdown_table(header, rows)


def _interval(figure: dict[str, Any]) -> str:
    low, high = figure["interval"]
    return f"{figure['value']:.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    sys.exit(main())
