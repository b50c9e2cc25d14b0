"""Items to look at: every size is another prime, so that no two axes can be confused."""

import torch
from torch import Tensor

from saccade.interpretation.explorer import Item, Map, Measure, TextAxis

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
