"""Items to look at: every size is another prime, so that no two axes can be confused."""

import struct
import zlib

import torch
from torch import Tensor

from saccade.interpretation.explorer import ImageAxis, Item, Map, Measure, TextAxis
from saccade.interpretation.explorer.axes import PNG

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
    """A picture of one colour, made without a library."""
    lines = (b"\0" + bytes((200, 120, 40)) * width) * height

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def caption() -> Item:
    """A text that looks at a picture, and a picture that looks at itself."""
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
