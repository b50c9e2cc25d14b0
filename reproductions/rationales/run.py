"""Rationales: models that answer from the few words that they pick, beside models that attend to all words.

Two parts: made-up reviews of three aspects, where the words that decide are known, and film reviews in which people
marked their reasons (ERASER), which need --data.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import aspects
import movies

import saccade
from reproductions.report import markdown_table, publish
from saccade.interpretation.explorer import write_page
from saccade.interpretation.plots import plot_lines
from saccade.models import models

FOLDER = Path(__file__).resolve().parent
PARTS = ("aspects", "movies")

# Made-up reviews. Both costs of a rationale are the same.
SWEEP = (0.001, 0.003, 0.01, 0.02, 0.04)
SMALL = {"embedding_dim": 32, "hidden_dim": 32, "dropout": 0.1}
STEPS = 500
READ_WORDS = {"inputs": {"text": {"class": "text", "tokeniser": "pretokenised"}}}
OF_ASPECTS: dict[str, dict[str, Any]] = {
    **{f"picks, sparsity {cost:g}": {"sparsity": cost, "coherence": cost, "warmup": 100} for cost in SWEEP},
    "picks one after another": {"sparsity": 0.005, "coherence": 0.005, "warmup": 100, "generator": "recurrent"},
    "picks, REINFORCE": {"sparsity": 0.01, "coherence": 0.01, "warmup": 400, "estimator": "reinforce"},
    "attention to states": {"encoder": "birnn"},
    "attention to words": {"encoder": "embedding"},
}
LONGER = {"picks, REINFORCE": 800}
"""Updates of models that learn more slowly."""

# Film reviews.
COSTS = (0.0003, 0.001, 0.003, 0.01)
PUBLISHED = "DeYoung et al. (2020): Lei et al.'s model 0.285 token F1; attention of a BERT and LSTM 0.417 AUPRC."


def main(arguments: list[str] | None = None) -> int:
    """Trains what is not trained yet, measures it, and writes tables and plots."""
    parser = argparse.ArgumentParser(prog="python -m reproductions rationales", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("ERASER_MOVIES"), help="eraser-movies.zip")
    parser.add_argument("--minilm", type=Path, help="a folder with MiniLM, to fine-tune it on the film reviews, too")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder for tables, plots and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/rationales"), help="folder for the trained models")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--models", nargs="+", help="of the film reviews; by default all that are there")
    parser.add_argument("--steps", type=int, help="updates of each model; by default, as below")
    parser.add_argument("--reviews", type=int, default=4000, help="made-up reviews to train on")
    parser.add_argument("--documents", type=int, help="film reviews of each split; by default all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.data is not None and not given.data.is_file():
        parser.error(f"There is no file {given.data}.")
    results, tables = {}, []
    given.output.mkdir(parents=True, exist_ok=True)
    if "aspects" in given.parts:
        results["aspects"] = part_of_aspects(given)
        tables.append("Made-up reviews, means over the three aspects:\n\n" + table_of_aspects(results["aspects"]))
        plot_aspects(results["aspects"], given.output)
    if "movies" in given.parts and given.data is None:
        print("No film reviews: set --data or ERASER_MOVIES to eraser-movies.zip.", file=sys.stderr)
    elif "movies" in given.parts:
        results["movies"] = part_of_movies(given)
        tables.append("Film reviews, test set:\n\n" + table_of_movies(results["movies"]))
        plot_movies(results["movies"], given.output)
    publish(given.output, results=results, table="\n".join(tables))
    return 0


def part_of_aspects(given: argparse.Namespace) -> dict[str, Any]:
    """Each model on each aspect, on validation and test reviews."""
    train, valid, test = (
        aspects.reviews(count, given.seed * 1000 + number)
        for number, count in enumerate((given.reviews, max(given.reviews // 8, 20), max(given.reviews // 4, 20)))
    )
    found: dict[str, Any] = {"true_share": aspects.true_share(test), "models": {}}
    for name, model in OF_ASPECTS.items():
        for aspect in aspects.ASPECTS:

            def measured(run: saccade.Run, aspect: str = aspect) -> dict[str, Any]:
                return {
                    split: aspects.measure(run.predict([each["text"] for each in several]), several, aspect)
                    for split, several in (("valid", valid), ("test", test))
                }

            steps = given.steps or LONGER.get(name, STEPS)
            results = finished(
                given.runs / "aspects" / f"{name} {aspect}",
                measured,
                "classification/pooling" if "encoder" in model else "classification/rationale",
                task=READ_WORDS,
                model={**SMALL, **model},
                data={"train": aspects.examples(train, aspect), "valid": aspects.examples(valid, aspect)},
                trainer={
                    "max_steps": steps,
                    "max_epochs": None,
                    "validate_every": max(steps // 5, 1),
                    "patience": None,
                    "batch_tokens": 2048,
                    "learning_rate": 3e-3,
                    "schedule": "constant",
                    "seed": given.seed,
                },
            )
            found["models"].setdefault(name, {})[aspect] = results
    return found


def part_of_movies(given: argparse.Namespace) -> dict[str, Any]:
    """Each model on the official splits; also random scores, and the gradients of the model with attention."""
    files = movies.write_splits(given.data, given.runs / "movies", given.documents)
    words = {"class": "pretokenised", "vocab_size": 20000, "min_frequency": 2}
    text = {"inputs": {"text": {"class": "text", "tokeniser": words, "max_length": 1500}}, "evidence": movies.EVIDENCE}
    data = {"train": files["train"], "valid": files["valid"], "columns": movies.COLUMNS}
    shared = {"seed": given.seed, "patience": None, "schedule": "constant"}
    if given.steps:
        shared |= {"max_steps": given.steps, "max_epochs": None, "validate_every": given.steps}
    rows: dict[str, dict[str, Any]] = {
        "attention": {
            "config": "classification/pooling",
            "task": text,
            "model": {"embedding_dim": 64, "hidden_dim": 64},
            "trainer": {"max_epochs": 8, "batch_tokens": 16384, "learning_rate": 2e-3, **shared},
        },
        **{
            f"picks, sparsity {cost:g}": {
                "config": "classification/rationale",
                "task": text,
                "model": {"embedding_dim": 64, "hidden_dim": 64, "sparsity": cost, "coherence": 2 * cost},
                "trainer": {"max_epochs": 8, "batch_tokens": 16384, "learning_rate": 2e-3, **shared},
            }
            for cost in COSTS
        },
    }
    if "han" in models.names():
        rows["HAN"] = {
            "config": "classification/han",
            "task": {"inputs": {"text": {"class": "document", "tokeniser": words, "sentences": "lines"}}}
            | {"evidence": movies.EVIDENCE},
            "trainer": {"max_epochs": 8, **shared},
        }
    if "bert" in models.names() and given.minilm is not None:
        rows["MiniLM"] = {
            "config": "classification/bert",
            "task": {"inputs": {"text": {"class": "wordpieces", "max_length": 510}}, "evidence": movies.EVIDENCE},
            "init_from": given.minilm,
            "trainer": {"max_epochs": 3, "batch_tokens": 4096, **shared, "schedule": "linear"},
        }
    found: dict[str, Any] = {}
    for name, row in rows.items():
        if given.models and name not in given.models:
            continue

        def measured(run: saccade.Run, name: str = name) -> dict[str, Any]:
            examples = list(run.plan.data.read(files["test"], run.task.scored, extras=run.task.extras))
            results: dict[str, Any] = {split: movies.figures_of(run, files[split]) for split in ("valid", "test")}
            if name == "attention":
                results["gradient"] = movies.agreement(movies.by_gradient(run, examples), examples)
                several = [movies.agreement(movies.at_random(examples, seed), examples) for seed in range(5)]
                results["random"] = {key: fmean(each[key] for each in several) for key in several[0]}
            pages = run.task.explain(run.model, examples[:4])
            write_page(given.runs / "movies" / f"{name}.html", pages, title=f"{name}, film reviews")
            return results

        arguments = {key: value for key, value in row.items() if key != "config"}
        found[name] = finished(given.runs / "movies" / name, measured, row["config"], data=data, **arguments)
    return found


def finished(
    folder: Path, measured: Callable[[saccade.Run], dict[str, Any]], config: str, **arguments: Any
) -> dict[str, Any]:
    """The figures of a model, which is trained unless it was trained and measured before."""
    notes = folder / "measured.json"
    if notes.is_file():
        kept: dict[str, Any] = json.loads(notes.read_text())
        return kept
    shutil.rmtree(folder, ignore_errors=True)  # an attempt that did not end
    started = time.process_time()
    run = saccade.train(config, output=folder, **arguments)
    minutes = (time.process_time() - started) / 60
    results = {"minutes": minutes, **measured(run)}
    notes.write_text(json.dumps(results, indent=1) + "\n")
    print(folder.name, json.dumps({key: value for key, value in results.items() if key != "curve"}), flush=True)
    return results


def mean_over_aspects(of_model: Mapping[str, Any], split: str = "test") -> dict[str, Any]:
    """The means of the figures of a model over the three aspects."""
    several = [of_aspect[split] for of_aspect in of_model.values()]
    means: dict[str, Any] = {
        key: fmean(each[key] for each in several) for key in several[0] if isinstance(several[0][key], float)
    }
    return means | {"curve": [fmean(column) for column in zip(*(each["curve"] for each in several), strict=True)]}


def at_true_share(found: Mapping[str, Any]) -> str:
    """The model of the sweep whose share of words kept on validation reviews is closest to the true one."""
    swept = [name for name in found["models"] if name.startswith("picks, sparsity")]
    return min(
        swept, key=lambda name: abs(mean_over_aspects(found["models"][name], "valid")["kept"] - found["true_share"])
    )


def table_of_aspects(found: Mapping[str, Any]) -> str:
    """A row for each model."""
    header = ["model", "words kept, %", "precision of what is kept, %", "its recall, %"]
    header += [f"precision of the top {aspects.SPAN}, %", "accuracy, %", "processor seconds per model"]
    chosen = at_true_share(found)
    rows = []
    for name, of_model in found["models"].items():
        r = mean_over_aspects(of_model)
        kept = [r.get(key, "all" if key == "kept" else "") for key in ("kept", "precision", "recall")]
        seconds = round(60 * fmean(of_aspect["minutes"] for of_aspect in of_model.values()))
        rows.append([f"**{name}**" if name == chosen else name, *kept, r["top"], r["accuracy"], seconds])
    note = f"\nThe words that decide are {found['true_share']:.1f} % of a review.\n"
    return markdown_table(header, rows) + note


def plot_aspects(found: Mapping[str, Any], output: Path) -> None:
    """Accuracy and precision against the share of words kept."""
    swept = sorted(
        (mean_over_aspects(of_model) for name, of_model in found["models"].items() if "sparsity" in name),
        key=lambda r: r["kept"],
    )
    shares = [r["kept"] for r in swept]
    share_of_one = found["true_share"] / aspects.SPAN
    lines = {
        "picks: precision": (shares, [r["precision"] for r in swept]),
        "picks: accuracy": (shares, [r["accuracy"] for r in swept]),
    }
    for name in ("attention to states", "attention to words"):
        curve = mean_over_aspects(found["models"][name])["curve"]
        lines[f"{name}: precision"] = ([share_of_one * n for n in range(1, len(curve) + 1)], curve)
    plot_lines(lines, output / "aspects.png", x="share of words kept, %", y="%")


def chosen_on_validation(found: Mapping[str, Any]) -> str:
    """The model of the sweep that agrees best with people on the validation reviews."""
    swept = [name for name in found if name.startswith("picks, sparsity")]
    return max(swept, key=lambda name: found[name]["valid"]["token_f1"])


def table_of_movies(found: Mapping[str, Any]) -> str:
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
    chosen = chosen_on_validation(found) if any("sparsity" in name for name in found) else ""
    for name, results in found.items():
        rows.append(row(f"**{name}**" if name == chosen else name, results["test"], results["minutes"]))
    return markdown_table(header, rows) + f"\n{PUBLISHED}\n"


def plot_movies(found: Mapping[str, Any], output: Path) -> None:
    """Accuracy and agreement with people against the share of words kept."""
    swept = sorted(
        (results["test"] for name, results in found.items() if "sparsity" in name), key=lambda r: float(r["kept"])
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


if __name__ == "__main__":
    sys.exit(main())
