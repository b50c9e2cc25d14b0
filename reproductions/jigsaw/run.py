"""Two fragments of a photograph: do they fit, and along which side? Does attention look at where they meet?

The first fragment is in the middle of a picture, and the second one lies against all four of its sides. It fits along
one of them, or along none: then it comes from elsewhere in the same photograph, or from another one.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import saccade
from reproductions.report import markdown_table, publish
from saccade.runs import Run

FOLDER = Path(__file__).resolve().parent
SPLITS = {"train": "trainImages", "test": "testImages"}
SIDE, BLOCK = 24, 8
"""Pixels of a fragment, and of a block of JPEG: both fragments of a pair begin at the same place of a block."""
NEAR = 8
"""Pixels on either side of a border that count as the stitching area."""
CONTRAST = 24.0
"""The least deviation of the grey levels of a fragment: pieces of clear sky would fit everywhere."""
GREY = 128
SIDES = {"left": (0, -1), "right": (0, 1), "top": (-1, 0), "bottom": (1, 0)}
NONE = "none"

MODELS: dict[str, dict[str, Any]] = {
    "soft": {"selection": "softmax"},
    "hard": {"selection": "hard"},
    "mean": {"pooling": "average"},
    "max": {"pooling": "max"},
}
"""What differs between the models."""

SIZES = {"encoder": {"class": "residual", "channels": [16, 32]}, "hidden_dim": 64, "dropout": 0.0}
"""18 x 18 annotations, each of which sees 23 x 23 pixels."""

Pixels = NDArray[np.uint8]
Box = tuple[float, float, float, float]


class Pair(NamedTuple):
    """Two fragments in one picture, the side along which they fit, and whether they are of one photograph."""

    picture: Pixels
    label: str
    same: bool


def main(arguments: list[str] | None = None) -> int:
    """Trains the models, tests them, and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m reproductions jigsaw", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("FLICKR8K"), help="see README.md")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder for the table and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs/jigsaw"), help="folder for the trained models")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--steps", type=int, default=1500, help="updates of each model")
    parser.add_argument("--examples", type=int, default=16_000, help="training pairs")
    parser.add_argument("--tested", type=int, default=2000, help="test pairs")
    parser.add_argument("--seed", type=int, default=1)
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
    results: dict[str, Any] = {name: measured(name, train, test, given) for name in given.models}
    results["mean colours, no network"] = {"fits": by_rule(colours_apart, train, test)["fits"]}
    results["pixels along the borders, no network"] = by_rule(edges_apart, train, test)
    results["uniform"] = {"border": 100.0 * uniform(), "borders": 400.0 * uniform()}
    header = [
        "model",
        "pairs right, %",
        "fit or not, %",
        "side right, % of those that fit",
        "weight at the shared border, %",
        "weight at all four borders, %",
        "updates",
        "processor minutes",
    ]
    keys = ("accuracy", "fits", "side", "border", "borders", "steps", "minutes")
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
        names = text.split()
        return [np.asarray(Image.open(io.BytesIO(files.read(each))).convert("RGB")) for each in names]


def drawn(photographs: list[Pixels], draws: np.random.Generator) -> Pair:
    """A pair of fragments: half of them fit, and half of the others are of one photograph."""
    side = list(SIDES)[draws.integers(4)]
    fits, same = bool(draws.random() < 0.5), bool(draws.random() < 0.5)
    while True:
        photograph, other = (photographs[draws.integers(len(photographs))] for _ in range(2))
        phase = draws.integers(BLOCK, size=2)  # where fragments begin within a block
        start, elsewhere = place(photograph, phase, draws), place(photograph, phase, draws)
        first, second = cut(photograph, *start), None
        if fits:
            line, column = SIDES[side]
            second = cut(photograph, start[0] + SIDE * line, start[1] + SIDE * column)
        elif not same:
            second = cut(other, *place(other, phase, draws))
        elif max(abs(start[0] - elsewhere[0]), abs(start[1] - elsewhere[1])) >= 2 * SIDE:  # a fragment between them
            second = cut(photograph, *elsewhere)
        if first is not None and second is not None and min(contrast(first), contrast(second)) >= CONTRAST:
            return Pair(laid(first, second), side if fits else NONE, fits or same)


def place(photograph: Pixels, phase: NDArray[np.int64], draws: np.random.Generator) -> tuple[int, int]:
    """The upper left corner of a fragment."""
    top, left = (
        int(start) + BLOCK * int(draws.integers((length - SIDE - int(start)) // BLOCK + 1))
        for length, start in zip(photograph.shape[:2], phase, strict=True)
    )
    return top, left


def cut(photograph: Pixels, top: int, left: int) -> Pixels | None:
    """A fragment; None beyond the edge of the photograph."""
    lines, columns = photograph.shape[:2]
    inside = 0 <= top <= lines - SIDE and 0 <= left <= columns - SIDE
    return photograph[top : top + SIDE, left : left + SIDE] if inside else None


def contrast(fragment: Pixels) -> float:
    """The deviation of its grey levels."""
    return float(fragment.mean(axis=2).std())


def laid(first: Pixels, second: Pixels) -> Pixels:
    """The first fragment in the middle, the second one on all sides of it, and grey corners."""
    picture = np.full((3 * SIDE, 3 * SIDE, 3), GREY, dtype=np.uint8)
    for line, column in SIDES.values():
        picture[(1 + line) * SIDE :, (1 + column) * SIDE :][:SIDE, :SIDE] = second
    picture[SIDE : 2 * SIDE, SIDE : 2 * SIDE] = first
    return picture


def border(label: str) -> Box:
    """The stitching area of a side: left, top, right and bottom, in pixels."""
    line, column = SIDES[label]
    x, y = (1.5 * SIDE + 0.5 * SIDE * step for step in (column, line))
    dx, dy = (NEAR, SIDE / 2) if column else (SIDE / 2, NEAR)
    return x - dx, y - dy, x + dx, y + dy


def uniform() -> float:
    """The share of the picture that the stitching area of one side takes."""
    return 2 * NEAR * SIDE / (3 * SIDE) ** 2


def measured(name: str, train: list[Pair], test: list[Pair], given: argparse.Namespace) -> dict[str, float]:
    """Trains and tests one model, unless its folder says that this was done."""
    folder = given.runs / name
    kept = given.runs / f"{name}-{given.steps}-{given.examples}-{given.tested}-{given.seed}.json"
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    shutil.rmtree(folder, ignore_errors=True)  # interrupted
    started = time.process_time()
    run = saccade.train(
        "classification/pictures",
        task={"inputs": {"picture": {"class": "image", "size": 3 * SIDE, "patch": BLOCK}}, "metrics": ["accuracy"]},
        model={
            "encoder": {"class": "residual", "channels": [16, 32]},
            "hidden_dim": 64,
            "dropout": 0.0,
            **MODELS[name],
        },
        data=[{"picture": pair.picture, "label": pair.label} for pair in train],
        trainer={
            "max_steps": given.steps,
            "batch_tokens": 32 * (3 * SIDE // BLOCK) ** 2,
            "learning_rate": 3e-3,
            "schedule": {"class": "cosine", "warmup": min(100, given.steps // 4)},
            "validate_every": max(1, given.steps // 5),
            "seed": given.seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    result = {**tested(run, test), "steps": run.result.step, "minutes": minutes}  # type: ignore[union-attr]
    kept.write_text(json.dumps(result))
    print(f"{name}: {result}", flush=True)
    return result


def tested(run: Run, test: list[Pair]) -> dict[str, float]:
    """How many answers are right, and how much weight is near the borders of pairs that fit."""
    answers = run.predict([pair.picture for pair in test])
    found = shares([str(answer.value) for answer in answers], test)
    looked = [(answer.weights, pair.label) for answer, pair in zip(answers, test, strict=True) if pair.label != NONE]
    if looked[0][0] is None:
        return found
    at = [{side: weight_within(weights[0].numpy(), border(side)) for side in SIDES} for weights, _ in looked]  # type: ignore[index]
    found["border"] = 100.0 * float(np.mean([each[label] for each, (_, label) in zip(at, looked, strict=True)]))
    found["borders"] = 100.0 * float(np.mean([sum(each.values()) for each in at]))
    return found


def shares(answers: list[str], pairs: list[Pair]) -> dict[str, float]:
    """Percentages of right answers."""
    both = list(zip(answers, [pair.label for pair in pairs], strict=True))
    fitting = [(answer, label) for answer, label in both if label != NONE]
    return {
        "accuracy": 100.0 * float(np.mean([answer == label for answer, label in both])),
        "fits": 100.0 * float(np.mean([(answer == NONE) == (label == NONE) for answer, label in both])),
        "side": 100.0 * float(np.mean([answer == label for answer, label in fitting])),
    }


def weight_within(weights: NDArray[np.float32], box: Box) -> float:
    """The weight of the places of a square grid whose centres lie in a box."""
    count = round(len(weights) ** 0.5)
    centres = (np.arange(count) + 0.5) * 3 * SIDE / count
    left, top, right, bottom = box
    columns, lines = (left <= centres) & (centres < right), (top <= centres) & (centres < bottom)
    return float(weights.reshape(count, count)[np.ix_(lines, columns)].sum())


def by_rule(distance: Callable[[Pixels, str], float], train: list[Pair], test: list[Pair]) -> dict[str, float]:
    """Without a network: the side of the smallest distance, if it is below a threshold that suits training pairs."""
    known, new = ([{s: distance(pair.picture, s) for s in SIDES} for pair in pairs] for pairs in (train, test))
    smallest, fits = np.array([min(each.values()) for each in known]), np.array([pair.label != NONE for pair in train])
    thresholds = np.quantile(smallest, np.linspace(0.0, 1.0, 101))
    best = max(thresholds, key=lambda threshold: float(((smallest < threshold) == fits).mean()))
    answers = [min(each, key=each.__getitem__) if min(each.values()) < best else NONE for each in new]
    return shares(answers, test)


def colours_apart(picture: Pixels, label: str) -> float:
    """How far the mean colours of both fragments are apart, whatever the side."""
    first, second = (picture[SIDE : 2 * SIDE, left : left + SIDE].mean(axis=(0, 1)) for left in (SIDE, 0))
    return float(np.abs(first - second).sum())


def edges_apart(picture: Pixels, label: str) -> float:
    """How far the pixels on both sides of a border are apart."""
    line, column = SIDES[label]
    upright = picture.swapaxes(0, 1) if column else picture
    place = SIDE if line + column < 0 else 2 * SIDE
    before, after = upright[place - 1 : place + 1, SIDE : 2 * SIDE].astype(float)
    return float(np.abs(before - after).mean())


if __name__ == "__main__":
    sys.exit(main())
