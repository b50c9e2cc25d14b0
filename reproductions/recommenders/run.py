"""Do reviews help to predict ratings, and do pointers find the review that decides?"""

import argparse
import csv
import io
import json
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import saccade
from reproductions.arguments import make_parser
from reproductions.recommenders import simulated
from reproductions.report import earlier, markdown_table, publish
from saccade.data.splits import last_of_each
from saccade.runs import Run

HERE = Path(__file__).parent
ARCHIVE, TABLE = "Musical_instruments_reviews.csv.zip", "Musical_instruments_reviews.csv"
COLUMNS = {"user": "reviewerID", "item": "asin", "rating": "overall", "text": "reviewText", "time": "unixReviewTime"}
MOST_BYTES = 1 << 28
MORE = 8
"""How many epochs of models of names take as long as one of the others, or less."""
LONGER = 5
"""How many times as many epochs models have that train as published; validation ends most of them earlier."""
RANKING = ["sampled_ndcg@10", "sampled_recall@10"]

TEXT = {"class": "reviews", "tokeniser": {"class": "word", "vocab_size": 8000, "lowercase": True}}
TEXT |= {"max_reviews": 8, "max_words": 20}


class Entry(NamedTuple):
    """A row of the table."""

    name: str
    config: str
    published: str
    model: Mapping[str, Any] = {}
    as_published: bool = False
    """Whether it reads all other training reviews, later ones too, has biases, and trains longer."""


ENTRIES = {
    "biases": Entry("mean and biases", "biases", ""),
    "mf": Entry("matrix factorisation", "matrix-factorisation", "1.956"),
    "fm": Entry("factorisation machine", "factorisation-machine", "1.346"),
    "deep_conn": Entry("DeepCoNN", "deep-conn", "1.202", {"embedding_dim": 32, "filters": 32, "hidden_dim": 32}),
    "dual_attention": Entry(
        "D-Attn",
        "dual-attention",
        "1.000",
        {"embedding_dim": 32, "local_filters": 64, "global_filters": 16, "hidden_dim": 64, "output_dim": 32},
    ),
    "mpcn": Entry("MPCN", "mpcn", "0.970", {"embedding_dim": 32, "hidden_dim": 32}),
}
ENTRIES |= {
    f"{name}_others": entry._replace(name=f"{entry.name}, all other reviews", as_published=True)
    for name, entry in ENTRIES.items()
    if entry.model
}
POINTING = {
    "task.text.max_words": "8",
    "task.text.max_reviews": "20",
    "model.embedding_dim": "32",
    "model.hidden_dim": "null",
    "model.score": "dot",
    "model.pointers": "1",
    "model.dropout": "0.3",
    "trainer.learning_rate": "3.0e-3",
    "trainer.patience": "10",
    "trainer.validate_every": "200",
}
"""What differs from the shipped configuration for simulated users."""
USERS = 400


def main(command: Sequence[str] | None = None) -> int:
    """Trains and measures what is asked for."""
    parser = make_parser(HERE, __doc__)
    found = os.environ.get("AMAZON_REVIEWS")
    parser.add_argument("--data", type=Path, default=None if found is None else Path(found), help=f"has {ARCHIVE}")
    parser.add_argument("--models", nargs="*", choices=ENTRIES, default=list(ENTRIES))
    parser.add_argument("--epochs", type=int, default=6, help="the most, of each model of real reviews")
    parser.add_argument("--ranked", type=int, default=100, help="test users whose lists are measured")
    parser.add_argument("--users", type=int, default=USERS, help="simulated users; 0 for none")
    parser.add_argument("--simulated-epochs", type=int, default=28)
    given = parser.parse_args(command)
    results = earlier(given.output)
    if given.users:
        results["simulated"] = pointing(given.runs / "simulated", given.users, given.simulated_epochs)
    if given.data is None:
        print(f"Skipped: real reviews. Set --data or AMAZON_REVIEWS to the folder of {ARCHIVE}.", file=sys.stderr)
    else:
        try:
            parts = read(given.data)
        except FileNotFoundError as error:
            parser.error(str(error))
        results["mean"] = constant(parts)
        for name in given.models:
            results[name] = measured(given.runs / name, ENTRIES[name], parts, given)
    publish(given.output, results=results, table=table(results))
    return 0


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The reviews: the last of each user to test, the last of the others to validate, the rest to train."""
    if (folder / TABLE).is_file():
        text = (folder / TABLE).read_text(encoding="utf-8")
    elif (folder / ARCHIVE).is_file():
        with zipfile.ZipFile(folder / ARCHIVE) as archive, archive.open(TABLE) as file:
            text = file.read(MOST_BYTES).decode("utf-8")
    else:
        raise FileNotFoundError(f"There is no {ARCHIVE} in {folder}.")
    rows = [{role: row[name] for role, name in COLUMNS.items()} for row in csv.DictReader(io.StringIO(text))]
    parts: dict[str, list[dict[str, Any]]] = {}
    for part in ("test", "valid"):
        last = last_of_each([row["user"] for row in rows], [float(row["time"]) for row in rows])
        parts[part] = [row for row, held in zip(rows, last, strict=True) if held]
        rows = [row for row, held in zip(rows, last, strict=True) if not held]
    return {"train": rows, **parts}


def constant(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The errors of always answering the mean of the training ratings."""
    ratings = {part: np.array([float(row["rating"]) for row in rows]) for part, rows in parts.items()}
    off = ratings["test"] - ratings["train"].mean()
    return {"mse": float((off**2).mean()), "mae": float(np.abs(off).mean())}


def measured(
    folder: Path, entry: Entry, parts: Mapping[str, list[dict[str, Any]]], given: argparse.Namespace
) -> dict[str, Any]:
    """Trains and tests one model, unless its folder says that this was done."""
    kept = folder / "measured.json"
    if kept.is_file():
        done: dict[str, Any] = json.loads(kept.read_text())
        return done
    shutil.rmtree(folder, ignore_errors=True)  # interrupted
    started = time.process_time()
    run = saccade.train(
        f"recommendation/{entry.config}",
        task={"text": TEXT, "history": "others" if entry.as_published else "earlier"} if entry.model else None,
        data={"train": parts["train"], "valid": parts["valid"], "columns": None},
        model={**entry.model, "biases": entry.as_published} if entry.model else None,
        trainer={
            "max_epochs": given.epochs * (LONGER if entry.as_published else 1 if entry.model else MORE),
            "validate_every": 60,
            "patience": 4,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    figures = run.evaluate(parts["test"]).figures
    some = parts["test"][:: max(1, len(parts["test"]) // given.ranked)][: given.ranked]
    figures |= run.evaluate(some, metrics=["mse", *RANKING]).figures | figures
    found = {name: figure.value for name, figure in figures.items()}
    found |= {"minutes": minutes, "parameters": sum(parameter.numel() for parameter in run.model.parameters())}
    kept.write_text(json.dumps(found))
    print(f"{folder.name}: {found}", flush=True)
    return found


def pointing(folder: Path, users: int, epochs: int) -> dict[str, Any]:
    """Trains MPCN on simulated users, unless that was done, and counts how often it points at the right review."""
    parts = simulated.parts(simulated.simulate(users, seed=1))
    run = _loaded(folder)
    if run is None:
        run = saccade.train(
            "recommendation/mpcn",
            data={"train": parts["train"], "valid": parts["valid"], "columns": None},
            overrides={**POINTING, "trainer.max_epochs": str(epochs)},
            output=folder,
        )
    figures = run.evaluate(parts["test"]).figures
    ratings = np.array([row["rating"] for row in parts["test"]])
    return {
        "pointer_accuracy": simulated.pointer_accuracy(run, parts["test"]),
        "chance": simulated.chance(run, parts["test"]),
        "mse": figures["mse"].value,
        "variance": float(ratings.var()),
        "users": users,
    }


def _loaded(folder: Path) -> Run | None:
    """The run of a training that has ended."""
    if (folder / "checksums.json").is_file():
        return saccade.load(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return None


def table(results: Mapping[str, Any]) -> str:
    """A row for each model of real reviews, and one for the simulated users."""
    header = ["model", "MSE", "MAE", "NDCG@10, %", "recall@10, %", "parameters", "processor minutes"]
    rows: list[list[object]] = []
    if "mean" in results:
        rows.append(
            ["the mean rating", *(f"{results['mean'][name]:.3f}" for name in ("mse", "mae")), "", "", "", "", ""]
        )
    for name, entry in ENTRIES.items():
        if name in results:
            found = results[name]
            errors = [f"{found[error]:.3f}" for error in ("mse", "mae")]
            others = [*(found[ranking] for ranking in RANKING), found["parameters"], found["minutes"]]
            rows.append([entry.name, *errors, *others, entry.published])
    text = markdown_table([*header, "published MSE (Digital Music)"], rows) if rows else ""
    if "simulated" in results:
        found = results["simulated"]
        cells = [found["users"], found["pointer_accuracy"], found["chance"]]
        cells += [f"{found['mse']:.3f}", f"{found['variance']:.3f}"]
        names = ["simulated users", "pointer accuracy, %", "by chance, %", "MSE", "variance of the ratings"]
        text += ("\n" if text else "") + markdown_table(names, [cells])
    return text


if __name__ == "__main__":
    sys.exit(main())
