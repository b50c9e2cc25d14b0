"""AN4, letter by letter: listen, attend and spell with CTC, as `speech/las` ships it but smaller, on real voices.

AN4 has 948 recordings for training and 130 for the test, by other speakers: spelled names, numbers, addresses.
"""

import argparse
import csv
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import saccade
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
BEAM = 8
SIZES = {"cell": "gru", "listener_dim": 128, "hidden_dim": 128, "ctc_weight": 0.4}
TRAINER = {"max_steps": 10_000, "batch_tokens": 4000, "learning_rate": 3e-3, "validate_every": 250}
SEARCHES: dict[str, dict[str, Any]] = {
    "attention and CTC": {},
    "attention alone": {"ctc_weight": 0.0},
    "attention, CTC and a language model": {"lm_weight": 0.3},
}
LANGUAGE = {"dim": 96, "num_heads": 4, "num_layers": 2, "dropout": 0.3}


def main(arguments: list[str] | None = None) -> int:
    """Trains a recogniser and a language model, tests three searches, and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m reproductions an4", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("AN4"), help="the folder with etc and wav")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder for the table and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/an4"), help="folder for the trained models")
    parser.add_argument(
        "--minutes",
        type=float,
        default=50.0,
        help="of training the recogniser, on the clock, resumed trainings included",
    )
    parser.add_argument("--steps", type=int, help="updates at most; by default, as in the configuration")
    parser.add_argument("--language-steps", type=int, default=400, help="updates of the language model")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the AN4 recordings. Set --data or AN4 to their folder.", file=sys.stderr)
        return 0
    if not (given.data / "etc").is_dir():
        parser.error(f"There is no {given.data / 'etc'}.")
    given.runs.mkdir(parents=True, exist_ok=True)
    tables = {split: write_table(given.data, split, given.runs) for split in ("train", "test")}
    run = recogniser(tables["train"], given.runs / "las", minutes=given.minutes, steps=given.steps, seed=given.seed)
    lm = language_model(tables["train"], given.runs / "lm", steps=given.language_steps, seed=given.seed)
    assert run.result is not None, "it has just been trained"
    results: dict[str, Any] = {"updates": run.result.step, "searches": {}}
    rows = []
    for name, options in SEARCHES.items():
        own = {**options, "lm": lm} if "lm_weight" in options else options
        found = run.evaluate(str(tables["test"]), beam=BEAM, **own)
        counts = {table.name: table for table in found.tables}["edits"].rows["words"][:4]
        figures = {figure: found.figures[figure].value for figure in ("wer", "cer")}
        edits = dict(zip(("substitutions", "deletions", "insertions", "words"), counts, strict=True))
        results["searches"][name] = {**figures, **edits}
        rows.append([name, *figures.values(), *counts, results["updates"]])
    header = ["search", "word error rate, %", "character error rate, %", "substitutions", "deletions", "insertions"]
    publish(given.output, results=results, table=markdown_table([*header, "words", "updates"], rows))
    return 0


def write_table(data: Path, split: str, folder: Path) -> Path:
    """The recordings of a split and what they say, as a table."""
    names = (data / "etc" / f"an4_{split}.fileids").read_text().split()
    lines = (data / "etc" / f"an4_{split}.transcription").read_text().splitlines()
    rows = []
    for name, line in zip(names, lines, strict=True):
        text, _, ended = line.rpartition("(")
        assert ended.rstrip(")") == name.rpartition("/")[2], f"{line!r} is not the text of {name}"
        files = sorted((data / "wav").glob(f"{name}.*"))
        assert files, f"there is no recording of {name} in {data / 'wav'}"
        words = [word for word in text.split() if word not in ("<s>", "</s>")]
        rows.append((os.path.relpath(files[0], folder), " ".join(words)))
    path = folder / f"{split}.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("file", "text"), *rows])
    return path


def recogniser(table: Path, folder: Path, *, minutes: float, steps: int | None, seed: int) -> saccade.Run:
    """The shipped configuration with a smaller model. A training that was interrupted is resumed."""
    if (folder / "checkpoints").is_dir():
        return saccade.train(resume=folder, trainer={"max_minutes": minutes})
    shutil.rmtree(folder, ignore_errors=True)
    limits: dict[str, Any] = {**TRAINER, "max_minutes": minutes, "seed": seed}
    if steps is not None:
        limits |= {"max_steps": steps, "validate_every": steps}
    return saccade.train(
        "speech/las",
        data={"train": str(table), "columns": {"source": "file", "target": "text"}},
        model=SIZES,
        trainer=limits,
        output=folder,
    )


def language_model(table: Path, folder: Path, *, steps: int, seed: int) -> saccade.Run:
    """Of the training texts, letter by letter."""
    shutil.rmtree(folder, ignore_errors=True)
    return saccade.train(
        "language/transformer",
        data={"train": str(table), "columns": {"text": "text"}},
        task={"text": {"class": "text", "tokeniser": "char"}},
        model=LANGUAGE,
        trainer={"max_steps": steps, "validate_every": max(1, steps // 6), "seed": seed},
        output=folder,
    )


if __name__ == "__main__":
    sys.exit(main())
