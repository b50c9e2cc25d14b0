"""Two fragments of a photograph: do they fit, and along which side? Does attention look at where they meet?

A picture shows two fragments side by side, turned so that the sides in question meet. Models learn whether they fit.
Those that do not are neighbours on a wrong side, parts of one photograph that lie apart, or of two photographs.
"""

import argparse
import gzip
import io
import json
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.data.corpus import Corpus
from saccade.evaluation.pointing import Box
from saccade.runs import Run

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "trainImages", "test": "testImages"}
SIDE, BLOCK = 24, 8
"""Pixels of a fragment, and of a block of JPEG: both fragments of a pair begin at the same place of a block."""
NEAR = 8
"""Pixels on either side of a border that count as the stitching area."""
CONTRAST = 24.0
"""The least deviation of the grey levels of a fragment: pieces of clear sky would fit everywhere."""
SIDES = {"right": (0, 1), "bottom": (1, 0), "left": (0, -1), "top": (-1, 0)}
"""The lines and columns to the neighbour on each side of a fragment; each turn to the left brings the next side to the
right."""
YES, NO = "fits", "does not fit"

MODELS: dict[str, dict[str, Any]] = {
    "soft": {"selection": "softmax"},
    "hard": {"selection": "hard"},
    "mean": {"pooling": "average"},
}
"""What differs between the models."""

SIZES = {"encoder": {"class": "residual", "channels": [16, 32]}, "hidden_dim": 64, "dropout": 0.0}
"""12 x 12 annotations, each of which sees 23 x 23 pixels."""
IMAGE = {"class": "image", "size": 2 * SIDE, "patch": BLOCK, "square": "stretch"}
BOX: Box = (0.5 - NEAR / (2 * SIDE), 0.0, 0.5 + NEAR / (2 * SIDE), 1.0)
"""The stitching area of every picture."""

Pixels = NDArray[np.uint8]


class Laid(NamedTuple):
    """Two fragments in one picture, and whether they fit."""

    picture: Pixels
    label: str


class Pair(NamedTuple):
    """Two fragments, and the side of the first along which the second fits, if there is one."""

    first: Pixels
    second: Pixels
    side: str | None


def main(arguments: list[str] | None = None) -> int:
    """Trains the models, tests them, and writes the table."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("FLICKR8K"), help="see README.md")
    parser.add_argument("--steps", type=int, default=1200, help="updates of each model")
    parser.add_argument("--examples", type=int, default=16_000, help="training pairs")
    parser.add_argument("--tested", type=int, default=1000, help="test pairs of each kind")
    given = parser.parse_args(arguments)
    if given.data is None:
        print("Skipped: this needs Flickr8k. Set --data or FLICKR8K to its folder.", file=sys.stderr)
        return 0
    try:
        photographs = {split: read(given.data, name) for split, name in SPLITS.items()}
    except FileNotFoundError as error:
        parser.error(str(error))
    draws = np.random.default_rng(given.seed)
    train = [drawn(photographs["train"], draws) for _ in range(given.examples)]
    test = [drawn(photographs["test"], draws) for _ in range(given.tested)]
    pairs = [neighbours(photographs["test"], draws) for _ in range(given.tested)]
    tried = [laid(first, second, side) for first, second, _ in pairs for side in SIDES]
    results: dict[str, Any] = {name: measured(name, train, test, pairs, tried, given) for name in given.models}
    for name, distance in (("mean colours, no network", colours_apart), ("border pixels, no network", edges_apart)):
        results[name] = by_rule(distance, train, test, pairs, tried)
    results["even weights"] = {"weight_in_box": 100.0 * (BOX[2] - BOX[0])}
    header = [
        "model",
        "fit or not, % right",
        "which side, % right",
        "weight within 8 pixels of the border, %",
        "largest weight there, %",
        "updates",
        "processor minutes",
    ]
    keys = ("accuracy", "side", "weight_in_box", "pointing", "steps", "minutes")
    rows = [[name, *(found.get(key, "") for key in keys)] for name, found in results.items()]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def read(folder: Path, name: str) -> list[Pixels]:
    """The photographs of a split, (lines, columns, 3) each."""
    from PIL import Image

    listed, archive = folder / f"Flickr_8k.{name}.txt", folder / "images128.zip"
    packed = listed.with_name(f"{listed.name}.gz")
    for path in (listed if listed.is_file() else packed, archive):
        if not path.is_file():
            raise FileNotFoundError(f"There is no {path.name.removesuffix('.gz')} in {folder}.")
    text = listed.read_text() if listed.is_file() else gzip.decompress(packed.read_bytes()).decode()
    with zipfile.ZipFile(archive) as files:
        return [np.asarray(Image.open(io.BytesIO(files.read(each))).convert("RGB")) for each in text.split()]


def drawn(photographs: Sequence[Pixels], draws: np.random.Generator) -> Laid:
    """A laid pair: half of them fit; of the others a third each are of every kind."""
    if draws.random() < 0.5:
        first, second, side = neighbours(photographs, draws)
        assert side is not None
        return laid(first, second, side, YES)
    side = list(SIDES)[draws.integers(4)]
    kind = draws.integers(3)
    if kind == 0:
        first, second, true = neighbours(photographs, draws)
        side = [each for each in SIDES if each != true][draws.integers(3)]
    else:
        first, second = strangers(photographs, draws, same=kind == 1)
    return laid(first, second, side)


def neighbours(photographs: Sequence[Pixels], draws: np.random.Generator) -> Pair:
    """Two fragments that fit."""
    side = list(SIDES)[draws.integers(4)]
    while True:
        photograph = photographs[int(draws.integers(len(photographs)))]
        top, left = place(photograph, draws.integers(BLOCK, size=2), draws)
        first = cut(photograph, top, left)
        second = cut(photograph, top + SIDE * SIDES[side][0], left + SIDE * SIDES[side][1])
        if first is not None and second is not None:
            return Pair(first, second, side)


def strangers(photographs: Sequence[Pixels], draws: np.random.Generator, *, same: bool) -> tuple[Pixels, Pixels]:
    """Two fragments with at least one between them in the same photograph, or of two photographs."""
    while True:
        one, two = draws.choice(len(photographs), 2, replace=False)
        photograph, other = photographs[one], photographs[one if same else two]
        phase = draws.integers(BLOCK, size=2)
        start, end = place(photograph, phase, draws), place(other, phase, draws)
        apart = not same or max(abs(start[0] - end[0]), abs(start[1] - end[1])) >= 2 * SIDE
        first, second = cut(photograph, *start), cut(other, *end)
        if apart and first is not None and second is not None:
            return first, second


def place(photograph: Pixels, phase: NDArray[np.int64], draws: np.random.Generator) -> tuple[int, int]:
    """The upper left corner of a fragment, which begins `phase` pixels after the corner of a block."""
    top, left = (
        int(start) + BLOCK * int(draws.integers((length - SIDE - int(start)) // BLOCK + 1))
        for length, start in zip(photograph.shape[:2], phase, strict=True)
    )
    return top, left


def cut(photograph: Pixels, top: int, left: int) -> Pixels | None:
    """A fragment; None beyond the edge of the photograph, or if it has little contrast."""
    lines, columns = photograph.shape[:2]
    if not (0 <= top <= lines - SIDE and 0 <= left <= columns - SIDE):
        return None
    fragment = photograph[top : top + SIDE, left : left + SIDE]
    return fragment if fragment.mean(axis=2).std() >= CONTRAST else None


def laid(first: Pixels, second: Pixels, side: str, label: str = NO) -> Laid:
    """The second fragment along a side of the first, both turned until that side is on the right."""
    turns = list(SIDES).index(side)
    return Laid(np.concatenate([np.rot90(first, turns), np.rot90(second, turns)], axis=1), label)


def measured(
    name: str, train: list[Laid], test: list[Laid], pairs: list[Pair], tried: list[Laid], given: argparse.Namespace
) -> dict[str, float]:
    """Trains and tests one model, unless its folder says that this was done."""
    folder = given.runs / name
    kept = given.runs / f"{name}-{given.steps}-{given.examples}-{given.tested}-{given.seed}.json"
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    shutil.rmtree(folder, ignore_errors=True)  # interrupted
    started = time.process_time()
    run = saccade.train(
        "classification/pictures",
        task={"inputs": {"picture": IMAGE}, "metrics": ["accuracy"]},
        model={**SIZES, **MODELS[name]},
        data=[{"picture": each.picture, "label": each.label} for each in train],
        trainer={
            "max_steps": given.steps,
            "batch_tokens": 32 * (2 * SIDE // BLOCK) ** 2,
            "learning_rate": 2e-3,
            "schedule": {"class": "cosine", "warmup": min(100, given.steps // 4)},
            "validate_every": max(1, given.steps // 5),
            "seed": given.seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    result = {**tested(run, test, pairs, tried), "minutes": minutes}
    kept.write_text(json.dumps(result))
    print(f"{name}: {result}", flush=True)
    return result


def tested(run: Run, test: list[Laid], pairs: list[Pair], tried: list[Laid]) -> dict[str, float]:
    """The figures of a model, and how often it finds the side along which neighbours fit."""
    assert run.result is not None, "it has just been trained"
    examples = [{"picture": each.picture, "label": each.label, "boxes": [BOX]} for each in test]
    corpus = Corpus(columns={role: role for role in examples[0]})
    found = {name: figure.value for name, figure in run.evaluate(examples, corpus=corpus).figures.items()}
    answers = run.predict([each.picture for each in tried])
    chances = [answer.details["probabilities"][YES] for answer in answers]
    return {**found, "side": sides_found(chances, pairs), "steps": run.result.step}


def sides_found(chances: Sequence[float], pairs: list[Pair]) -> float:
    """The percentage of pairs whose true side is the most likely of the four that were tried."""
    best = np.reshape(chances, (len(pairs), len(SIDES))).argmax(axis=1)
    return 100.0 * float(np.mean([list(SIDES)[place] == pair.side for place, pair in zip(best, pairs, strict=True)]))


def by_rule(
    distance: Callable[[Laid], float], train: list[Laid], test: list[Laid], pairs: list[Pair], tried: list[Laid]
) -> dict[str, float]:
    """Without a network: fragments fit if their distance is below the threshold that suits the training pairs best."""
    known = np.array([distance(each) for each in train])
    fits = np.array([each.label == YES for each in train])
    thresholds = np.quantile(known, np.linspace(0.0, 1.0, 101))
    best = max(thresholds, key=lambda threshold: float(((known < threshold) == fits).mean()))
    right = [(distance(each) < best) == (each.label == YES) for each in test]
    return {"accuracy": 100.0 * float(np.mean(right)), "side": sides_found([-distance(each) for each in tried], pairs)}


def colours_apart(each: Laid) -> float:
    """How far the mean colours of both fragments are apart."""
    first, second = np.split(each.picture.mean(axis=0), 2)
    return float(np.abs(first.mean(axis=0) - second.mean(axis=0)).sum())


def edges_apart(each: Laid) -> float:
    """How far the pixels on both sides of the border are apart."""
    first, second = each.picture[:, SIDE - 1 : SIDE + 1].astype(np.float64).swapaxes(0, 1)
    return float(np.abs(first - second).mean())


if __name__ == "__main__":
    sys.exit(main())
