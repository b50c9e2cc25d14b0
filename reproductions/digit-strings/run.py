"""Strings of spoken digits: trained on one to three, tested on five to ten.

Content attention compares what is heard with what is wanted, and cannot tell the second "seven" from the first. An
attention that also sees where it was before can move on. The recordings of the Free Spoken Digit Dataset are
concatenated; those numbered 0 to 4 of each speaker and digit are for the test.
"""

import os
import random
import shutil
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.data.recordings import as_wav, read_samples
from saccade.interpretation.plots import plot_lines

FOLDER = Path(__file__).resolve().parent
TESTED = 5
"""Recordings of each speaker and digit, counted from 0, that are for the test."""
RATE = 8000
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SHORTEST, LONGEST = 1, 3  # digits of a training string
TEST_LENGTHS = (1, 2, 3, 5, 6, 7, 8, 9, 10)
PAUSE = 0.1  # seconds between digits, at most

PYRAMID, FLAT = [2, 2], [1, 1]
LOCATION = {"class": "location_aware", "num_filters": 10, "width": 15}  # positions of 80 ms
FINE = {**LOCATION, "width": 61}  # the same time in positions of 20 ms
MODELS: dict[str, dict[str, Any]] = {
    "content, pyramid": {"score": "additive", "pyramid": PYRAMID},
    "location-aware, pyramid": {"score": LOCATION, "pyramid": PYRAMID},
    "location-aware and sharpened, pyramid": {
        "score": LOCATION,
        "selection": {"class": "softmax", "temperature": 0.5},
        "pyramid": PYRAMID,
    },
    "location-aware, flat": {"score": FINE, "pyramid": FLAT},
}
SIZES = {
    "class": "las",
    "source_stride": 2,
    "embedding_dim": 16,
    "listener_dim": 64,
    "hidden_dim": 64,
    "num_layers": 1,
    "cell": "gru",
    "dropout": 0.3,
}


class Utterance(NamedTuple):
    """A recording as the contents of a file, and its digits in words."""

    sound: bytes
    digits: str


def main(arguments: list[str] | None = None) -> int:
    """Trains the models one after another, tests each on all lengths, writes table and picture."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("FSDD"), help="recordings.zip, or the folder")
    parser.add_argument("--steps", type=int, default=1000, help="updates of each model")
    parser.add_argument("--strings", type=int, default=6000, help="of training")
    parser.add_argument("--tests", type=int, default=60, help="strings of each length in the test")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs the Free Spoken Digit Dataset. Set --data or FSDD to it.", file=sys.stderr)
        return 0
    if not given.data.exists():
        parser.error(f"There is no {given.data}.")
    given.runs.mkdir(parents=True, exist_ok=True)
    given.output.mkdir(parents=True, exist_ok=True)
    clips = {split: read_clips(given.data, given.runs, split) for split in ("train", "test")}
    choices = random.Random(given.seed)
    train, valid = (
        [make(clips["train"], choices, choices.randint(SHORTEST, LONGEST)) for _ in range(count)]
        for count in (given.strings, min(100, given.strings))
    )
    tests = {length: [make(clips["test"], choices, length) for _ in range(given.tests)] for length in TEST_LENGTHS}
    results = {}
    for name in given.models:
        folder = given.runs / name.replace(", ", "-").replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
        results[name] = measured(name, train, valid, tests, folder, steps=given.steps, seed=given.seed)
        print(name, results[name], flush=True)
    write(results, given.output)
    return 0


def read_clips(data: Path, folder: Path, split: str) -> dict[str, list[list[np.ndarray]]]:
    """The recordings `7_jackson_32.wav` of a split: for each speaker, for each digit, the samples of each."""
    if data.suffix == ".zip":
        unpacked = folder / "recordings"
        if not unpacked.is_dir():
            partly = folder / "recordings.part"  # until it is complete
            with zipfile.ZipFile(data) as archive:
                archive.extractall(partly)
            partly.rename(unpacked)
        data = unpacked
    found: dict[str, list[list[np.ndarray]]] = {}
    for file in sorted(data.rglob("*_*_*.wav")):
        digit, speaker, number = file.stem.split("_")
        if (int(number) < TESTED) == (split == "test"):
            samples, rate = read_samples(str(file))
            assert rate == RATE, f"{file} has {rate} samples per second"
            found.setdefault(speaker, [[] for _ in range(10)])[int(digit)].append(samples)
    return found


def make(clips: dict[str, list[list[np.ndarray]]], choices: random.Random, length: int) -> Utterance:
    """A random string of this many digits by one speaker, with short pauses."""
    by_digit = clips[choices.choice(sorted(clips))]
    known = [digit for digit, several in enumerate(by_digit) if several]
    digits = choices.choices(known, k=length)
    parts = []
    for digit in digits:
        parts += [choices.choice(by_digit[digit]), np.zeros(int(choices.uniform(0.0, PAUSE) * RATE), np.float32)]
    return Utterance(as_wav(np.concatenate(parts), RATE), " ".join(WORDS[digit] for digit in digits))


def measured(
    name: str,
    train: Sequence[Utterance],
    valid: Sequence[Utterance],
    tests: dict[int, list[Utterance]],
    folder: Path,
    *,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """Trains one model and tests it on strings of each length."""
    started = time.process_time()
    run = saccade.train(
        task={
            "class": "generation",
            "source": {"class": "audio", "rate": RATE, "mels": 40, "gain": 6.0, "time_masks": 2, "time_width": 8},
            "target": {"class": "text", "tokeniser": "char"},
            "metrics": ["wer"],
        },
        model={**SIZES, **MODELS[name]},
        data={"train": list(train), "valid": list(valid)},
        trainer={
            "max_steps": steps,
            "batch_tokens": 4000,
            "learning_rate": 3e-3,
            "schedule": {"class": "cosine", "warmup": min(100, steps)},
            "clip_norm": 1.0,
            "validate_every": max(1, steps // 5),
            "validate_options": {"beam": 1},
            "metric": "wer",
            "seed": seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    errors, strings = {}, {}
    for length, several in tests.items():
        answers = run.predict([each.sound for each in several], beam=1, max_length=8 * length + 20)
        figures = run.task.score(answers, [{"target": [each.digits]} for each in several])
        errors[length] = figures["wer"].value
        pairs = zip(answers, several, strict=True)
        strings[length] = 100.0 * fmean(answer.text == each.digits for answer, each in pairs)
    short = [length for length in tests if length <= LONGEST]
    long = [length for length in tests if length > LONGEST]
    return {
        "errors": errors,
        "strings": strings,
        "errors_short": fmean(errors[length] for length in short),
        "errors_long": fmean(errors[length] for length in long),
        "strings_long": fmean(strings[length] for length in long),
        "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "minutes": minutes,
    }


def write(results: dict[str, Any], output: Path) -> None:
    """A line for each model, and the error rates by length."""
    header = ["model", "digits wrong, % (1 to 3)", "(5 to 10)", "(10)", "strings right, % (5 to 10)", "parameters"]
    rows = [
        [
            name,
            found["errors_short"],
            found["errors_long"],
            found["errors"][max(TEST_LENGTHS)],
            found["strings_long"],
            found["parameters"],
            found["minutes"],
        ]
        for name, found in results.items()
    ]
    lines = {name: (list(found["errors"]), list(found["errors"].values())) for name, found in results.items()}
    plot_lines(lines, output / "lengths.png", x="digits in the string", y="digits wrong, %")
    publish(output, results=results, table=markdown_table([*header, "processor minutes"], rows))


if __name__ == "__main__":
    sys.exit(main())
