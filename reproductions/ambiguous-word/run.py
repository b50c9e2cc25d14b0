"""A word that the text leaves open and the picture decides: does the model look at the right region?

A picture is a grid of 3 x 3 squares of any shade of grey, but one is coloured. The source describes a scene and names
its colour by a word that says nothing ("coloured"); the target names the colour.
"""

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
COLOURS = {"rot": (0.9, 0.1, 0.1), "grün": (0.1, 0.8, 0.1), "blau": (0.1, 0.2, 0.9), "gelb": (0.9, 0.9, 0.1)}
ANIMALS = {"dog": "hund", "cat": "katze", "bird": "vogel", "horse": "pferd", "fish": "fisch"}
PLACES = {"house": "haus", "tree": "baum", "car": "auto", "lake": "see", "bridge": "brücke"}
GRID, PATCH = 3, 4
CHANCE = 100 / len(COLOURS)

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("text alone", {}),
    "m1": ("m1: global vector", {"vectors": "global"}),
    "m2": ("m2: regions and global vector", {"vectors": "both"}),
    "m3": ("m3: parallel threads", {"vectors": "both", "threads": True}),
    "regions": ("regions among the words", {"vectors": "regions"}),
    "each": (
        "attention to text and regions",
        {"class": "multi_source", "encoders": ["recurrent", "given"], "bidirectional": True, "num_layers": 1},
    ),
}
"""The name of each model in the table, and its options."""

Example = tuple[dict[str, Any], str, int]
"""Sources and target, the word that the picture decides, and its region."""


def main(arguments: list[str] | None = None) -> int:
    """Trains and tests the models, and writes the table."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--steps", type=int, default=500, help="updates of each model")
    parser.add_argument("--examples", type=int, default=2000, help="training examples")
    parser.add_argument("--tested", type=int, default=500, help="test examples")
    given = parser.parse_args(arguments)
    draws = np.random.default_rng(given.seed)
    train, test = ([drawn(draws) for _ in range(count)] for count in (given.examples, given.tested))
    results = {name: measured(name, train, test, given.runs / name, given.steps, given.seed) for name in given.models}
    header = ["model", "colour right, %", "all words right, %", "attention to the picture, %"]
    header += ["of it on the right region, %", "region found, %", "processor minutes"]
    names = ("colour", "exact_match", "looked", "mass", "pointing", "minutes")
    rows = [[MODELS[model][0], *(found.get(name, "") for name in names)] for model, found in results.items()]
    publish(given.output, results={**results, "chance": CHANCE}, table=markdown_table(header, rows))
    return 0


def drawn(draws: np.random.Generator) -> Example:
    """One example."""
    animal, place = str(draws.choice(list(ANIMALS))), str(draws.choice(list(PLACES)))
    colour, region = str(draws.choice(list(COLOURS))), int(draws.integers(GRID**2))
    picture: NDArray[np.float64] = np.repeat(draws.uniform(0.1, 0.9, (GRID, GRID, 1)), 3, axis=2)
    picture[region // GRID, region % GRID] = COLOURS[colour]
    pixels = picture.repeat(PATCH, axis=0).repeat(PATCH, axis=1) + draws.normal(0.0, 0.03, (GRID * PATCH,) * 2 + (3,))
    if draws.random() < 0.5:
        said, wanted = f"a coloured {animal} near the {place}", f"{ANIMALS[animal]} {colour} {PLACES[place]}"
    else:
        said, wanted = f"the {animal} sees a coloured {place}", f"{ANIMALS[animal]} {PLACES[place]} {colour}"
    return {"source": said, "picture": pixels.clip(0.0, 1.0), "target": wanted}, colour, region


def measured(
    name: str, train: list[Example], test: list[Example], folder: Path, steps: int, seed: int
) -> dict[str, float]:
    """Trains and tests one model."""
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    words = {"class": "text", "tokeniser": "word"}
    sources = {} if name == "text" else {"picture": {"class": "image", "size": GRID * PATCH, "patch": PATCH}}
    started = time.process_time()
    run = saccade.train(
        task={"source": words, "sources": sources, "target": words, "metrics": ["exact_match"]},
        model={"class": "multimodal", "embedding_dim": 32, "hidden_dim": 64, **MODELS[name][1]},
        data=[{role: example[role] for role in ("source", *sources, "target")} for example, _, _ in train],
        trainer={
            "max_steps": steps,
            "batch_tokens": 64 * (7 + len(sources) * GRID**2 + 4),
            "learning_rate": 3e-3,
            "schedule": {"class": "constant", "warmup": 50},
            "clip_norm": 1.0,
            "validate_every": max(1, steps // 2),
            "metric": "exact_match",
            "seed": seed,
        },
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    asked = [{role: example[role] for role in ("source", *sources)} for example, _, _ in test]
    answers = run.predict(asked, beam=1)
    right = [answer.text == example["target"] for answer, (example, _, _) in zip(answers, test, strict=True)]
    places = [example["target"].split().index(colour) for example, colour, _ in test]
    written = [answer.text.split() for answer in answers]
    named = [
        len(said) > place and said[place] == colour
        for said, place, (_, colour, _) in zip(written, places, test, strict=True)
    ]
    found = {"colour": _percent(named), "exact_match": _percent(right), "minutes": minutes}
    if not sources:
        return found
    looked = [answer.others["picture"].weights for answer in answers]  # type: ignore[attr-defined]
    rows = [
        weights[place] if place < len(weights) else torch.zeros(GRID**2)
        for weights, place in zip(looked, places, strict=True)
    ]
    totals = [float(row.sum()) for row in rows]
    regions = [region for _, _, region in test]
    masses = [float(row[n]) / total for row, total, n in zip(rows, totals, regions, strict=True) if total > 0]
    hits = [int(row.argmax()) == n for row, n in zip(rows, regions, strict=True)]
    found |= {"looked": 100 * sum(totals) / len(totals)}
    if MODELS[name][1].get("vectors") != "global":  # which has no regions
        found |= {"mass": 100 * sum(masses) / max(1, len(masses)), "pointing": _percent(hits)}
    return found


def _percent(right: list[bool]) -> float:
    return 100 * sum(right) / len(right)


if __name__ == "__main__":
    sys.exit(main())
