"""Items to show: axes have different lengths, so that no two can be confused."""

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.interpretation.explorer import (
    Contributions,
    ImageAxis,
    Item,
    Map,
    Measure,
    NodeAxis,
    Outcome,
    SoundAxis,
    TextAxis,
    VisitAxis,
)
from saccade.interpretation.explorer.media import grey_png

SOURCE = TextAxis(
    pieces=["[CLS]", "un", "##believ", "##able", "luck", ".", "[SEP]"],
    words=[[1, 2, 3], [4], [5]],
    special=[0, 6],
    sentences=[[1, 2, 3, 4, 5]],
)
TARGET = TextAxis(pieces=["ein", "Glück", "sonder", "gleichen", "</s>"], words=[[0], [1], [2, 3]], special=[4])


def softmax(*shape: int, seed: int = 0, sharp: float = 2.0) -> Tensor:
    return (sharp * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).softmax(-1)


def translation(title: str = "first", seed: int = 0) -> Item:
    maps = [
        Map(name="encoder.0", weights=softmax(3, 7, 7, seed=seed), queries=SOURCE, keys=SOURCE, layer=0),
        Map(name="encoder.1", weights=softmax(3, 7, 7, seed=seed + 1), queries=SOURCE, keys=SOURCE, layer=1),
        Map(name="cross", weights=softmax(3, 5, 7, seed=seed + 2), queries=TARGET, keys=SOURCE),
    ]
    measures = [Measure(name="AER", value=0.25 + seed, meaning="How many links are wrong. Less is better.")]
    return Item(title=title, maps=maps, measures=measures, links=[(0, 2), (1, 1)])


def png(width: int = 34, height: int = 22) -> bytes:
    """A picture of one colour."""
    return grey_png(np.full((height, width), 160, np.uint8))


def caption() -> Item:
    """A text that attends to a picture, and a picture that attends to itself."""
    text = TextAxis(pieces=["a", "red", "kite", "</s>"], special=[3])
    picture = ImageAxis(png=png(), grid=(3, 5))
    patches = ImageAxis(png=png(), grid=(3, 5), leading=["[CLS]"])
    return Item(
        title="caption",
        maps=[
            Map(name="vision", weights=softmax(2, 16, 16), queries=patches, keys=patches),
            Map(name="decoder", weights=softmax(2, 4, 15), queries=text, keys=picture),
        ],
    )


RATE = 8000
LETTERS = TextAxis(pieces=["s", "i", "x", "</s>"], special=[3])


def recording(*, sound: bool = True, frames: int = 23, feature_frames: int = 46) -> Item:
    """Letters that attend to a tone of half a second, later letters to later frames."""
    time = np.arange(RATE // 2) / RATE
    given = {"samples": 0.5 * np.sin(2 * np.pi * 440 * time), "rate": RATE} if sound else {}
    features = np.random.default_rng(0).standard_normal((16, feature_frames)).cumsum(axis=1)
    axis = SoundAxis.from_features(features, seconds=0.5, frames=frames, **given)
    centre = torch.tensor([3.0, 9.0, 14.0, 20.0])[:, None]
    weights = (-((torch.arange(float(frames)) - centre) ** 2) / 4).softmax(-1)
    return Item(title="a tone", maps=[Map(name="decoder", weights=weights[None], queries=LETTERS, keys=axis)])


def review(words: int = 40, *, sentences: int = 0, heads: int = 2) -> Item:
    """A label that attends to the words of a text; with sentences, a second map attends to these."""
    pieces = [f"word{number}" for number in range(words - 1)] + ["."]
    size = -(-words // sentences) if sentences else words
    groups = [list(range(start, min(start + size, words))) for start in range(0, words, size)]
    text = TextAxis(pieces=pieces, words=[[place] for place in range(words)], sentences=groups if sentences else None)
    label = TextAxis(pieces=["positive"])
    maps = [Map(name="words", weights=softmax(heads, 1, words), queries=label, keys=text)]
    if sentences:
        names = TextAxis(pieces=[f"sentence {number + 1}" for number in range(sentences)])
        maps.append(Map(name="sentences", weights=softmax(1, 1, sentences, seed=1), queries=label, keys=names))
    outcomes = [Outcome(label="positive", probability=0.875), Outcome(label="negative", probability=0.125, gold=True)]
    return Item(title="a review", maps=maps, outcomes=outcomes)


def star(neighbours: int, *, heads: int = 3) -> Item:
    """A node with its neighbours, and itself in front."""
    names = [f"paper {number}" for number in range(neighbours + 1)]
    labels = [("Theory", "Agents", "")[number % 3] for number in range(neighbours + 1)]
    queries = NodeAxis(names=names[:1], labels=labels[:1])
    weights = softmax(heads, 1, neighbours + 1)
    return Item(
        title="a node",
        maps=[Map(name="conv", weights=weights, queries=queries, keys=NodeAxis(names=names, labels=labels))],
    )


def path_graph() -> Item:
    """a - b - c - d, each with itself; b is in the centre."""
    near = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]).bool()
    scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(3)).masked_fill(~near, float("-inf"))
    nodes = NodeAxis(names=["a", "b", "c", "d"], labels=["x", "y", "x", "y"], centre=1)
    return Item(title="a path", maps=[Map(name="conv", weights=scores.softmax(-1), queries=nodes, keys=nodes)])


def record(*, each_visit: bool = False, link: str = "logistic", outcomes: tuple[str, ...] = ("ill", "well")) -> Item:
    """Three visits and a patient; of each visit, or for the whole record."""
    codes = [["cough", "rash"], [], ["fever 38.9", "cough", "<b>pain</b>"]]
    axis = VisitAxis(
        names=["2024-05-01", "2024-05-11", "2024-08-01"],
        codes=codes,
        days=[0.0, 10.0, 92.0],
        static=["sex=F", "age 61"],
    )
    made = torch.Generator().manual_seed(4)

    def added(end: int) -> Contributions:
        sizes = [len(each) if place < end else 0 for place, each in enumerate(codes)]
        values = [torch.randn(len(each), len(outcomes), generator=made, dtype=torch.double) for each in codes]
        values = [each * (size > 0) for each, size in zip(values, sizes, strict=True)]
        static = torch.randn(2, len(outcomes), generator=made, dtype=torch.double)
        bias = torch.linspace(-0.5, 0.5, len(outcomes), dtype=torch.double)
        return Contributions(outcomes=outcomes, link=link, bias=bias, static=static, codes=values)  # type: ignore[arg-type]

    ends = [1, 2, 3] if each_visit else [3]
    weights = softmax(1, len(ends), 3)
    if each_visit:
        weights = weights.tril()
    rows = axis if each_visit else TextAxis(pieces=[outcomes[0]])
    shown = [added(end) for end in ends]
    likely = [
        Outcome(label=name, probability=float(p)) for name, p in zip(outcomes, shown[-1].probabilities(), strict=True)
    ]
    maps = [Map(name="attention", weights=weights, queries=rows, keys=axis, contributions=shown)]
    return Item(title="a record", maps=maps, outcomes=likely)


def wait_until(page: Any, condition: str, argument: Any = None, seconds: float = 20.0) -> None:
    """Waits for a condition in the page. Playwright's own wait needs `eval`, which our pages forbid."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition, argument):
        assert time.monotonic() < end, f"not within {seconds:g} s: {condition}"
        page.wait_for_timeout(20)
