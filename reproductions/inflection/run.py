"""Inflection with soft, exact hard and hard monotonic attention: CoNLL-SIGMORPHON 2017, task 1.

The folder holds the files of the task, gzipped or not: `english-train-medium`, `english-dev`, `english-uncovered-test`
and so on, each line a lemma, a form and tags. A language is trained by itself; "run <V;PST>" becomes "ran".
"""

import argparse
import gzip
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import saccade
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
MODELS = {
    "soft": "soft attention (RNNsearch)",
    "exact-hard": "exact hard attention (0-HARD)",
    "hard-monotonic-0": "hard monotonic, order 0 (0-MONO)",
    "hard-monotonic": "hard monotonic, order 1 (1-MONO)",
}
PUBLISHED = {"soft": 93.4, "exact-hard": 94.5, "hard-monotonic-0": 94.4, "hard-monotonic": 94.8}
"""Wu and Cotterell (2019), 51 languages, high."""

Pair = tuple[str, str]


def main(arguments: list[str] | None = None) -> int:
    """Trains every model on every language, and writes a line for each and the mean."""
    parser = argparse.ArgumentParser(prog="python -m reproductions inflection", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("CONLL2017"), help="the folder with the files")
    parser.add_argument("--size", choices=("low", "medium", "high"), default="medium", help="of the training files")
    parser.add_argument("--languages", nargs="+", help="by default all that the folder holds")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="where table and JSON go")
    parser.add_argument("--runs", type=Path, default=Path("runs/inflection"), help="where the trained models go")
    parser.add_argument("--steps", type=int, help="updates of each model, if not those of its configuration")
    parser.add_argument("--tests", type=int, help="words in each test, if not all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: it needs CoNLL-SIGMORPHON 2017. Name its folder with --data, or in CONLL2017.", file=sys.stderr)
        return 0
    languages = given.languages or languages_of(given.data, given.size)
    if not languages:
        print(f"{given.data} has no file *-train-{given.size}.", file=sys.stderr)
        return 2
    results: dict[str, Any] = {}
    for language in languages:
        train, valid, test = (
            read(given.data, f"{language}-{part}") for part in (f"train-{given.size}", "dev", "uncovered-test")
        )
        results[language] = {}
        for name in given.models:
            folder = given.runs / given.size / language / name
            shutil.rmtree(folder, ignore_errors=True)  # of an earlier reproduction
            run, minutes = fit(name, train, valid, steps=given.steps, seed=given.seed, folder=folder)
            figures = run.evaluate(test[: given.tests]).figures
            assert run.result is not None
            results[language][name] = {
                "accuracy": figures["exact_match"].value,
                "character_error_rate": figures["character_error_rate"].value,
                "minutes": minutes,
                "steps": run.result.step,
            }
            print(language, name, results[language][name], flush=True)
    write(results, given.models, given.size, given.output)
    return 0


def languages_of(folder: Path, size: str) -> list[str]:
    """Those with a training file of that size."""
    return sorted({path.name.partition("-train-")[0] for path in folder.glob(f"*-train-{size}*")})


def read(folder: Path, name: str) -> list[Pair]:
    """The pairs of a file: "run <V;PST>" and "ran"."""
    plain, zipped = folder / name, folder / f"{name}.gz"
    if zipped.is_file():
        text = gzip.decompress(zipped.read_bytes()).decode("utf-8")
    else:
        text = plain.read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line.strip()]
    return [(f"{lemma} <{tags}>", form) for lemma, form, tags in rows]


def fit(
    name: str, train: Sequence[Pair], valid: Sequence[Pair], *, steps: int | None, seed: int, folder: Path
) -> tuple[saccade.Run, float]:
    """A model from its configuration, and the minutes that it took."""
    started = time.monotonic()
    limits: dict[str, Any] = {} if steps is None else {"max_steps": steps, "validate_every": steps}
    run = saccade.train(
        f"inflection/{name}",
        data={"train": list(train), "valid": list(valid)},
        trainer={"seed": seed, **limits},
        output=folder,
    )
    return run, (time.monotonic() - started) / 60


def write(results: dict[str, Any], models: Sequence[str], size: str, output: Path) -> None:
    """A line for each language, the mean, and what was published for more languages and more data."""

    def line(figure: str, of: Sequence[str]) -> list[float]:
        return [fmean(results[language][name][figure] for language in of) for name in models]

    rows: list[list[object]] = [[language, *line("accuracy", [language])] for language in results]
    rows.append([f"**mean of {len(results)}**", *line("accuracy", list(results))])
    rows.append(["published: mean of 51, high", *(PUBLISHED[name] for name in models)])
    rows.append(["minutes for a language", *line("minutes", list(results))])
    header = [f"accuracy, {size}", *(MODELS[name] for name in models)]
    publish(output, results={size: results}, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
