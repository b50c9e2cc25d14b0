"""Spoken digits, written letter by letter: the configuration `speech/rnnsearch` as it is shipped, on real voices.

The Free Spoken Digit Dataset has 3,000 recordings of six speakers. Recordings 0 to 4 of each speaker and digit are its
official test set; the others are for training.
"""

import csv
import os
import shutil
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TESTED = 5
"""Recordings of each speaker and digit, counted from 0, that are for the test."""


def main(arguments: list[str] | None = None) -> int:
    """Trains a model, tests it, and writes the table."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("FSDD"), help="recordings.zip, or the folder")
    parser.add_argument("--steps", type=int, help="updates; by default, as in the configuration")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the Free Spoken Digit Dataset. Set --data or FSDD to it.", file=sys.stderr)
        return 0
    if not given.data.exists():
        parser.error(f"There is no {given.data}.")
    given.runs.mkdir(parents=True, exist_ok=True)
    tables = write_tables(recordings(given.data, given.runs), given.runs)
    result = measured(tables, given.runs / "model", steps=given.steps, seed=given.seed)
    header = ["training recordings", "test recordings", "words right, %", "character error rate, %"]
    header += ["updates", "processor minutes"]
    names = ("trained", "tested", "exact_match", "cer", "steps", "minutes")
    publish(given.output, results=result, table=markdown_table(header, [[result[name] for name in names]]))
    return 0


def recordings(data: Path, folder: Path) -> list[Path]:
    """The files `7_jackson_32.wav`: digit, speaker, number; unpacked if they are in an archive."""
    if data.suffix == ".zip":
        with zipfile.ZipFile(data) as archive:
            archive.extractall(folder / "recordings")
        data = folder / "recordings"
    return sorted(data.rglob("*_*_*.wav"))


def write_tables(files: list[Path], folder: Path) -> dict[str, Path]:
    """The official split as two tables of paths and words."""
    rows: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    for file in files:
        digit, _, number = file.stem.split("_")
        split = "test" if int(number) < TESTED else "train"
        rows[split].append((os.path.relpath(file, folder), WORDS[int(digit)]))
    for split, several in rows.items():
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("file", "text"), *several])
    return {split: folder / f"{split}.csv" for split in rows}


def measured(tables: dict[str, Path], folder: Path, *, steps: int | None, seed: int) -> dict[str, Any]:
    """Trains and tests one model."""
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    started = time.process_time()
    run = saccade.train(
        "speech/rnnsearch",
        data={"train": str(tables["train"]), "columns": {"source": "file", "target": "text"}},
        trainer={"seed": seed} | ({} if steps is None else {"max_steps": steps, "validate_every": steps}),
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    found = run.evaluate(str(tables["test"]))
    figures = {name: found.figures[name].value for name in ("exact_match", "cer")}
    counts = {name: len(tables[name].read_text().splitlines()) - 1 for name in tables}
    assert run.result is not None, "it has just been trained"
    steps = run.result.step
    return {"trained": counts["train"], "tested": counts["test"], **figures, "steps": steps, "minutes": minutes}


if __name__ == "__main__":
    sys.exit(main())
