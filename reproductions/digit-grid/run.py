"""A grid of digits whose true places are known: does attention look at what it names?

A picture is a grid of 4 x 4 cells, each with a digit, in any place of its cell and with noise. One digit of each column
is red, the others are blue. The caption names the red digits from left to right.
"""

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.evaluation.pointing import Box
from saccade.runs import Run

FOLDER = Path(__file__).resolve().parent
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GLYPHS = {  # 5 x 7 pixels, a number of five bits for each line
    0: "14 17 19 21 25 17 14",
    1: "4 12 4 4 4 4 14",
    2: "14 17 1 2 4 8 31",
    3: "31 2 4 2 1 17 14",
    4: "2 6 10 18 31 2 2",
    5: "31 16 30 1 1 17 14",
    6: "6 8 16 30 17 17 14",
    7: "31 1 2 4 8 8 8",
    8: "14 17 17 14 17 17 14",
    9: "14 17 17 15 1 2 12",
}
GRID, CELL = 4, 8
FIGURES = ("exact_match", "token_accuracy", "pointing")
RED, BLUE = (1.0, 0.15, 0.15), (0.15, 0.15, 1.0)
NOISE = 0.1
MODELS: dict[str, dict[str, Any]] = {
    "soft": {"selection": "softmax"},
    "hard": {"selection": "hard"},
}
"""What differs between the models."""

ENCODERS: dict[str, dict[str, Any]] = {
    "local": {"class": "patches", "num_layers": 0},  # its own cell
    "residual": {"class": "residual", "channels": [16, 32, 64]},  # its own cell and those around it
}
"""What makes the 4 x 4 annotations of a picture."""

Picture = NDArray[np.float64]


def main(arguments: list[str] | None = None) -> int:
    """Trains both models, tests them, and writes the table."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--steps", type=int, default=1200, help="updates of each model")
    parser.add_argument("--examples", type=int, default=3000, help="training pictures")
    parser.add_argument("--tested", type=int, default=1000, help="test pictures")
    parser.add_argument("--encoder", choices=list(ENCODERS), default="local", help="what an annotation sees")
    given = parser.parse_args(arguments)
    draws = np.random.default_rng(given.seed)
    train, test = ([drawn(draws) for _ in range(count)] for count in (given.examples, given.tested))
    results = {
        name: measured(
            {**MODELS[name], "encoder": ENCODERS[given.encoder]},
            train,
            test,
            given.runs / name,
            given.steps,
            given.seed,
        )
        for name in given.models
    }
    header = [
        "attention",
        "captions right, %",
        "digits right, %",
        "pointing accuracy, %",
        "updates",
        "processor minutes",
    ]
    names = (*FIGURES, "steps", "minutes")
    rows = [[model, *(found[name] for name in names)] for model, found in results.items()]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def drawn(draws: np.random.Generator) -> tuple[Picture, str, list[Box]]:
    """A picture, its caption, and the box of each of its words."""
    picture = NOISE * draws.random((GRID * CELL, GRID * CELL, 3))
    digits = draws.integers(0, 10, (GRID, GRID))
    chosen = draws.integers(0, GRID, GRID)  # the line of the red digit of each column
    for line in range(GRID):
        for column in range(GRID):
            top = line * CELL + int(draws.integers(0, 2))
            left = column * CELL + int(draws.integers(0, 4))
            bits = [int(row) for row in GLYPHS[int(digits[line, column])].split()]
            shape = np.array([[row >> (4 - x) & 1 for x in range(5)] for row in bits])[..., None]
            colour = RED if chosen[column] == line else BLUE
            picture[top : top + 7, left : left + 5] += shape * (np.array(colour) - NOISE)
    caption = " ".join(WORDS[digits[chosen[column], column]] for column in range(GRID))
    boxes: list[Box] = [
        (column / GRID, chosen[column] / GRID, (column + 1) / GRID, (chosen[column] + 1) / GRID)
        for column in range(GRID)
    ]
    return picture.clip(0.0, 1.0), caption, boxes


def measured(
    options: dict[str, Any], train: list[Any], test: list[Any], folder: Path, steps: int, seed: int
) -> dict[str, float]:
    """Trains and tests one model."""
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    started = time.process_time()
    run = saccade.train(
        "captioning/show-attend-tell",
        task={
            "source": {"class": "image", "size": GRID * CELL, "patch": CELL},
            "target": {"class": "text", "tokeniser": "word", "max_length": 10},
            "metrics": ["exact_match", "token_accuracy"],
        },
        model={
            "class": "show_attend_tell",
            "annotation_dim": 64,
            "embedding_dim": 64,
            "hidden_dim": 64,
            "doubly_stochastic": 0.0,  # most places of these pictures are not to be looked at
            "dropout": 0.0,
            **options,
        },
        data=[{"source": picture, "target": caption} for picture, caption, _ in train],
        trainer={
            "max_steps": steps,
            "batch_tokens": 64 * (GRID**2 + GRID + 1),
            "learning_rate": 2e-3,
            "schedule": {"class": "constant", "warmup": 50},
            "validate_every": max(1, steps // 5),
            "metric": "exact_match",
            "seed": seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    rows = [{"source": picture, "target": caption, "boxes": boxes} for picture, caption, boxes in test]
    found = run.evaluate(rows, beam=1, metrics=FIGURES).figures
    return {**{name: found[name].value for name in FIGURES}, "steps": _steps(run), "minutes": minutes}


def _steps(run: Run) -> int:
    assert run.result is not None, "it has just been trained"
    return run.result.step


if __name__ == "__main__":
    sys.exit(main())
