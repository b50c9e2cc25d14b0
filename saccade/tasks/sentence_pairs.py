"""Pairs of neighbouring and of unrelated stretches of text, as BERT is pre-trained on."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from saccade.fields.wordpieces import lengths_kept

Chunk = dict[str, Any]
"""Sentences of one document that follow each other: their `ids`, one after another, the `lengths` of the sentences, and
the number of the `document`."""


class Pair(NamedTuple):
    """Two stretches of text."""

    one: list[int]
    other: list[int]
    """Empty if there is nothing that could follow."""

    follows: bool
    """Whether the other is what comes next."""


def chunks(sentences: Sequence[list[int]], *, document: int, most: int, short_share: float) -> list[Chunk]:
    """Cuts a document into stretches of whole sentences that fill `most` tokens, or for some documents fewer.

    Randomness is seeded by the document itself.

    Args:
        sentences: the tokens of each; one longer than half of `most` is cut up.
        document: a number that tells documents apart.
        most: the tokens of a stretch.
        short_share: the share of documents that are cut into stretches of random length, since models also have to read
            short texts.
    """
    chance = random.Random(document)
    target = chance.randint(2, most) if chance.random() < short_share else most
    half = max(1, most // 2)
    pieces = [ids[start : start + half] for ids in sentences for start in range(0, len(ids), half)]
    found: list[list[list[int]]] = [[]]
    for ids in pieces:
        if found[-1] and sum(map(len, found[-1])) + len(ids) > target:
            found.append([])
        found[-1].append(ids)
    return [
        {"ids": [token for ids in several for token in ids], "lengths": list(map(len, several)), "document": document}
        for several in found
        if several
    ]


def room(chunk: Chunk, most: int) -> int:
    """The maximum number of tokens in the pair made from a chunk: a single sentence gets a second one."""
    tokens = len(chunk["ids"])
    return min(most, tokens if len(chunk["lengths"]) > 1 else 2 * tokens)


def pairs(rows: Sequence[Chunk], *, most: int, generator: torch.Generator) -> list[Pair]:
    """A pair for each chunk: half of them are followed by what comes next, and half by another document.

    A single sentence is always followed by another document. All documents are those of the batch; if it has only one,
    what comes next is used, or nothing.
    """
    chance = random.Random(int(torch.randint(2**62, (1,), generator=generator)))
    found = []
    for chunk in rows:
        sentences = _sentences(chunk)
        cut = chance.randint(1, len(sentences) - 1) if len(sentences) > 1 else 1
        elsewhere = _elsewhere(chunk, rows, chance)
        follows = len(sentences) > 1 and (chance.random() < 0.5 or elsewhere is None)
        one = _joined(sentences[:cut])
        other = _joined(sentences[cut:])
        if not follows and elsewhere is not None:
            several = _sentences(elsewhere)
            several = several[chance.randrange(len(several)) :]
            wanted, taken = room(chunk, most) - len(one), 1
            while taken < len(several) and len(_joined(several[:taken])) < wanted:
                taken += 1
            other = _joined(several[:taken])
        kept = lengths_kept([len(one), len(other)], room(chunk, most))
        found.append(Pair(_shortened(one, kept[0], chance), _shortened(other, kept[1], chance), follows))
    return found


def number_of(document: str) -> int:
    """A number that tells documents apart."""
    return int.from_bytes(hashlib.blake2b(document.encode(), digest_size=7).digest())


def _elsewhere(chunk: Chunk, rows: Sequence[Chunk], chance: random.Random) -> Chunk | None:
    """A chunk of another document, if there is one."""
    drawn = (chance.choice(rows) for _ in rows)
    return next((other for other in itertools.chain(drawn, rows) if other["document"] != chunk["document"]), None)


def _sentences(chunk: Chunk) -> list[list[int]]:
    found, start = [], 0
    for length in chunk["lengths"]:
        found.append(list(chunk["ids"][start : start + length]))
        start += length
    return found


def _joined(sentences: Sequence[list[int]]) -> list[int]:
    return [token for ids in sentences for token in ids]


def _shortened(ids: list[int], kept: int, chance: random.Random) -> list[int]:
    """Shortens the ids to this many, removing them from the front or the back at random."""
    front = sum(chance.random() < 0.5 for _ in range(len(ids) - kept))
    return ids[front : front + kept]
