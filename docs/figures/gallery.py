"""Makes the pages of the gallery: python docs/figures/gallery.py FOLDER [--only date] [--pictures docs/images].

They show the weights of models that are trained here, in about a minute each, on data made here.
`make docs` puts the pages next to the built site; the pictures of them are committed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saccade
from saccade.interpretation.explorer import write_page
from saccade.models import AttentionPooling, Transformer

DATES = ["Sunday, 15 November 2026", "3 April 1998"]
REVIEWS = ["a slow start but a superb and moving end", "two dull hours and a clumsy end"]


def date_page(path: Path, folder: Path, steps: int) -> None:
    """RNNsearch on dates."""
    run = saccade.train(
        "dates/rnnsearch",
        model={"embedding_dim": 32, "hidden_dim": 64, "maxout_dim": 64},
        data={"train": f"dates:train:{20 * steps}", "valid": "dates:valid:20"},
        trainer={"max_steps": steps, "validate_every": steps, "learning_rate": 1e-2, "batch_tokens": 2048},
        output=folder / "dates",
    )
    write_page(path, run.explain(DATES), title="Two dates", side_by_side=True)


def text_page(path: Path, folder: Path, steps: int) -> None:
    """Attention pooling on made-up reviews."""
    draw = random.Random(1)
    run = saccade.train(
        task={"class": "classification", "inputs": {"text": {"class": "text", "tokeniser": "word"}}},
        model=partial(AttentionPooling, embedding_dim=16, hidden_dim=16, selection="entmax15", encoder="embedding"),
        data=[_review(draw) for _ in range(400)],
        trainer={"max_steps": steps, "learning_rate": 1e-2},
        output=folder / "reviews",
    )
    write_page(path, run.explain(REVIEWS), title="Two classified texts")


def _review(draw: random.Random) -> tuple[str, str]:
    verdict = draw.choice(["good", "bad"])
    words = {"good": ["superb", "moving", "charming", "clever"], "bad": ["slow", "dull", "clumsy", "bland"]}
    plain = ["start", "end", "film", "story", "hours", "cast"]
    other = "bad" if verdict == "good" else "good"
    said = [*draw.sample(words[verdict], 2), *draw.sample(words[other], draw.randint(0, 1))]
    draw.shuffle(said)
    return " but ".join(f"a {word} {draw.choice(plain)} and two" for word in said), verdict


def transformer_page(path: Path, folder: Path, steps: int) -> None:
    """A Transformer that reverses letters: every layer and head."""
    draw = random.Random(2)
    texts = ["".join(draw.choices("abcdefgh", k=draw.randint(2, 8))) for _ in range(600)]
    run = saccade.train(
        task={"source": {"class": "text", "tokeniser": "char"}},
        model=partial(Transformer, dim=32, num_heads=4, encoder_layers=2, decoder_layers=2, feed_forward_dim=64),
        data=[(text, text[::-1]) for text in texts],
        trainer={"max_steps": steps, "learning_rate": 5e-3, "schedule": {"class": "linear", "warmup": 20}},
        output=folder / "letters",
    )
    write_page(path, run.explain(["abcdefgh"]), title="A Transformer that reverses letters")


def graph_page(path: Path, folder: Path, steps: int) -> None:
    """A graph attention network on two groups of nodes."""
    draw = np.random.default_rng(3)
    labels = np.arange(40) % 2
    near = labels[:, None] == labels[None, :]
    edges = np.argwhere(np.triu(draw.random((40, 40)) < np.where(near, 0.2, 0.03), 1))
    features = draw.normal(size=(40, 6)) + labels[:, None] * np.array([1.5, -1.5, 0, 0, 0, 0])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "graph.npz", edges=edges, x=features.astype("float32"))
    run = saccade.train(
        "graphs/gat",
        task={"inputs": {"node": {"class": "node", "graph": str(folder / "graph.npz"), "hops": 2}}},
        model={"num_heads": 4, "dropout": 0.2},
        data=[{"node": str(node), "label": ["blue", "red"][labels[node]]} for node in range(30)],
        trainer={"max_steps": steps, "validate_every": None, "metric": "loss", "patience": None},
        output=folder / "nodes",
    )
    degrees = np.bincount(edges.ravel(), minlength=40)
    write_page(path, run.explain([str(int(degrees.argmax()))]), title="A node and its neighbours")


TONES = {"do": 524.0, "re": 588.0, "mi": 660.0, "fa": 698.0, "sol": 784.0, "la": 880.0}


def sound_page(path: Path, folder: Path, steps: int) -> None:
    """The shipped recogniser, smaller, on melodies of three to five tones."""
    draw = random.Random(4)
    run = saccade.train(
        "speech/rnnsearch",
        task={
            "class": "generation",
            "source": {"class": "audio", "rate": 8000, "mels": 40},
            "target": {"class": "text", "tokeniser": "word"},
            "metrics": ["exact_match"],
        },
        model={"source_stride": 4, "embedding_dim": 24, "hidden_dim": 48, "encoder_layers": 1, "dropout": 0.0},
        data=[_melody(draw.choices(list(TONES), k=draw.randint(3, 5)), draw) for _ in range(300)],
        trainer={
            "max_steps": steps,
            "batch_tokens": 2000,
            "learning_rate": 1e-2,
            "schedule": "constant",
            "validate_every": None,
            "metric": "loss",
        },
        output=folder / "melodies",
    )
    sound, _ = _melody(["do", "mi", "sol", "mi"], draw)
    write_page(path, run.explain([sound]), title="A recording")


def _melody(names: list[str], draw: random.Random) -> tuple[np.ndarray, str]:
    """Tones of different lengths with pauses between them, at 8 kHz, and their names."""
    parts = []
    for name in names:
        time = np.arange(draw.randint(1200, 2400)) / 8000
        parts += [0.3 * np.sin(2 * np.pi * TONES[name] * time) * np.sin(np.pi * time / time[-1]), np.zeros(400)]
    return np.concatenate(parts).astype("float32"), " ".join(names)


COLOURS = {"red": (205, 60, 50), "green": (60, 150, 80), "blue": (60, 90, 190), "yellow": (235, 190, 60)}
SHAPES = ("circle", "square", "triangle")


def picture_page(path: Path, folder: Path, steps: int) -> None:
    """Show, Attend and Tell, smaller, on pictures of two shapes."""
    draw = random.Random(5)
    run = saccade.train(
        "captioning/show-attend-tell",
        task={
            "class": "generation",
            "source": {"class": "image", "size": 32, "patch": 8},
            "target": {"class": "text", "tokeniser": "word"},
            "metrics": ["exact_match"],
        },
        model={
            "class": "show_attend_tell",
            "encoder": {"class": "residual", "channels": [16, 32]},
            "annotation_dim": 48,
            "embedding_dim": 32,
            "hidden_dim": 64,
            "doubly_stochastic": 0.0,
            "dropout": 0.0,
        },
        data=[_shapes(draw) for _ in range(800)],
        trainer={
            "max_steps": steps,
            "batch_tokens": 32 * 22,
            "learning_rate": 3e-3,
            "schedule": {"class": "constant", "warmup": 20},
            "validate_every": None,
            "metric": "loss",
        },
        output=folder / "shapes",
    )
    write_page(path, run.explain([_shapes(draw)[0]]), title="A picture of two shapes")


def _shapes(draw: random.Random) -> tuple[np.ndarray, str]:
    """Two shapes from left to right on a light ground, (144, 144, 3), and their names."""
    lines, columns = np.mgrid[:144, :144]
    picture = np.full((144, 144, 3), 238, np.uint8)
    said = []
    for half in range(2):
        colour, shape = draw.choice(list(COLOURS)), draw.choice(SHAPES)
        y, x, size = draw.randint(34, 110), 36 + 72 * half + draw.randint(-6, 6), draw.randint(20, 28)
        down, across = lines - y, columns - x
        inside = {
            "circle": down**2 + across**2 < size**2,
            "square": np.maximum(abs(down), abs(across)) < 0.9 * size,
            "triangle": (down < 0.8 * size) & (down > 2 * abs(across) - size),
        }[shape]
        picture[inside] = COLOURS[colour]
        said += [colour, shape]
    return picture, " ".join(said)


PAGES: dict[str, Any] = {
    "date": date_page,
    "text": text_page,
    "recording": sound_page,
    "picture": picture_page,
    "graph": graph_page,
    "transformer": transformer_page,
}
VIEWS = {"transformer": "view=heads"}
STEPS = {"date": 300, "text": 60, "recording": 200, "picture": 900, "graph": 60, "transformer": 250}


def make(folder: Path, *, steps: int | None = None, only: str | None = None) -> list[Path]:
    """Writes the pages; with fewer steps for a test."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, write in PAGES.items():
        if only in (None, name):
            with tempfile.TemporaryDirectory() as runs:
                made.append(folder / f"{name}.html")
                write(made[-1], Path(runs), steps or STEPS[name])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=list(PAGES))
    parser.add_argument("--pictures", type=Path, help="also take a picture of each page")
    given = parser.parse_args()
    for path in make(given.folder, only=given.only):
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
        if given.pictures is not None:
            from explorer import screenshot

            picture = given.pictures / f"gallery-{path.stem}.png"
            screenshot(path, picture, fragment=VIEWS.get(path.stem, ""), width=960, height=560, scale=1)


if __name__ == "__main__":
    main()
