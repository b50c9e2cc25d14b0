"""AN4, letter by letter: listen, attend and spell with convolutions, location-aware attention and CTC, on real voices.

AN4 has 948 recordings for training and 130 for the test, by other speakers: spelled names, numbers, addresses.
"""

import csv
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
BEAM = 8
SOUND = {"task.source.time_width": 10}  # what is blanked in a spelled letter cannot be guessed from its neighbours
SIZES = {
    "cell": "gru",
    "source_stride": 1,
    "source_filters": 32,
    "listener_dim": 160,
    "pyramid": [1, 1],
    "hidden_dim": 128,
    "score": "location_aware",
    "ctc_weight": 0.5,
    "dropout": 0.3,
}
TRAINER = {
    "max_steps": 8000,
    "batch_tokens": 5000,
    "learning_rate": 2e-3,
    "schedule": {"class": "cosine", "warmup": 200},
    "validate_every": 400,
    "precision": "bf16",
}
CTC_WEIGHTS, LM_WEIGHTS = (0.3, 0.5, 0.7), (0.1, 0.3)
RATES, COUNTS = ("wer", "cer"), ("substitutions", "deletions", "insertions", "words")
LANGUAGE = {"dim": 96, "num_heads": 4, "num_layers": 2, "dropout": 0.3}


def main(arguments: list[str] | None = None) -> int:
    """Trains a recogniser and a language model, tests three searches, and writes the table."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("AN4"), help="the folder with etc and wav")
    parser.add_argument(
        "--minutes",
        type=float,
        default=50.0,
        help="of training the recogniser, on the clock, resumed trainings included",
    )
    parser.add_argument("--steps", type=int, help="updates at most; by default, as in the configuration")
    parser.add_argument("--language-steps", type=int, default=400, help="updates of the language model")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the AN4 recordings. Set --data or AN4 to their folder.", file=sys.stderr)
        return 0
    if not (given.data / "etc").is_dir():
        parser.error(f"There is no {given.data / 'etc'}.")
    given.runs.mkdir(parents=True, exist_ok=True)
    tables = write_tables(given.data, given.runs)
    run = recogniser(tables, given.runs / "las", minutes=given.minutes, steps=given.steps, seed=given.seed)
    lm = language_model(tables["train"], given.runs / "lm", steps=given.language_steps, seed=given.seed)
    assert run.result is not None, "it has just been trained"
    found = searches(run, lm, tables)
    spent = float(minutes_file(given.runs / "las").read_text())
    results = {"updates": run.result.step, "processor_minutes": spent, "searches": found}
    rows = [
        [name, *(each[figure] for figure in (*RATES, *COUNTS)), results["updates"], spent]
        for name, each in found.items()
    ]
    header = ["search", "word error rate, %", "character error rate, %", *COUNTS, "updates", "processor minutes"]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def searches(run: saccade.Run, lm: saccade.Run, tables: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """The figures of each search on the test. Its weights are those that do best on the held-out speakers."""
    both = best(run, tables["valid"], [{"ctc_weight": each} for each in CTC_WEIGHTS])
    helped = best(run, tables["valid"], [{**both, "lm": lm, "lm_weight": each} for each in LM_WEIGHTS])
    options = {
        "attention and CTC": both,
        "attention alone": {"ctc_weight": 0.0},
        "attention, CTC and a language model": helped,
    }
    weights = {name: {key: value for key, value in each.items() if key != "lm"} for name, each in options.items()}
    return {name: {**weights[name], **figures(run, tables["test"], each)} for name, each in options.items()}


def best(run: saccade.Run, table: Path, candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """The options of a search with the lowest word error rate."""
    return min(candidates, key=lambda options: float(figures(run, table, options)["wer"]))


def figures(run: saccade.Run, table: Path, options: dict[str, Any]) -> dict[str, float]:
    """Error rates and counts of a search over a table."""
    found = run.evaluate(str(table), beam=BEAM, **options)
    counts = {table.name: table for table in found.tables}["edits"].rows["words"][:4]
    return {**{rate: found.figures[rate].value for rate in RATES}, **dict(zip(COUNTS, counts, strict=True))}


def write_tables(data: Path, folder: Path) -> dict[str, Path]:
    """Tables of the recordings and what they say; every 19th speaker of the training is held out for validation."""
    rows = {split: read_split(data, split, folder) for split in ("train", "test")}
    held = sorted({speaker for speaker, *_ in rows["train"]})[::19]
    rows["valid"] = [row for row in rows["train"] if row[0] in held]
    rows["train"] = [row for row in rows["train"] if row[0] not in held]
    tables = {split: folder / f"{split}.csv" for split in rows}
    for split, path in tables.items():
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("speaker", "file", "text"), *rows[split]])
    return tables


def read_split(data: Path, split: str, folder: Path) -> list[tuple[str, str, str]]:
    """The speaker, the file, relative to a folder, and the words of each recording."""
    names = (data / "etc" / f"an4_{split}.fileids").read_text().split()
    lines = (data / "etc" / f"an4_{split}.transcription").read_text().splitlines()
    rows = []
    for name, line in zip(names, lines, strict=True):
        text, _, ended = line.rpartition("(")
        assert ended.rstrip(")") == name.rpartition("/")[2], f"{line!r} is not the text of {name}"
        files = sorted((data / "wav").glob(f"{name}.*"))
        assert files, f"there is no recording of {name} in {data / 'wav'}"
        words = [word for word in text.split() if word not in ("<s>", "</s>")]
        rows.append((files[0].parent.name, os.path.relpath(files[0], folder), " ".join(words)))
    return rows


def recogniser(tables: dict[str, Path], folder: Path, *, minutes: float, steps: int | None, seed: int) -> saccade.Run:
    """The shipped configuration with another listener. A training that was interrupted is resumed."""
    limits: dict[str, Any] = {"max_minutes": minutes}
    resumed = (folder / "checkpoints").is_dir()
    spent = minutes_file(folder)
    before = float(spent.read_text()) if resumed and spent.is_file() else 0.0
    started = time.process_time()
    try:
        if resumed:
            return saccade.train(resume=folder, trainer=limits)
        shutil.rmtree(folder, ignore_errors=True)
        limits |= {**TRAINER, "seed": seed}
        if steps is not None:
            limits |= {"max_steps": steps, "validate_every": steps}
        files = {split: str(tables[split]) for split in ("train", "valid")}
        return saccade.train(
            "speech/las",
            data={**files, "columns": {"source": "file", "target": "text"}},
            model=SIZES,
            trainer=limits,
            overrides=SOUND,
            output=folder,
        )
    finally:
        spent.write_text(str(before + (time.process_time() - started) / 60))


def minutes_file(folder: Path) -> Path:
    """Where the processor minutes of a training are noted, those before it was resumed included."""
    return folder.with_suffix(".minutes")


def language_model(table: Path, folder: Path, *, steps: int, seed: int) -> saccade.Run:
    """Of the training texts, letter by letter; one that is there already is kept."""
    if (folder / "model.safetensors").is_file():
        return saccade.load(folder)
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
