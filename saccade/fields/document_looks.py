"""The attention of a model to the words and sentences of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.fields.looking import Look
from saccade.interpretation.explorer import TextAxis
from saccade.interpretation.recording import Recorded, Trace
from saccade.layers.packing import length_blocks


class Level(NamedTuple):
    """The attention to the words, or to the sentences, of each document of a batch."""

    path: str
    weights: list[Tensor]
    """(heads, words) or (heads, sentences), for each document."""


def levels(mask: Tensor, trace: Trace) -> tuple[list[Level], list[Level]]:
    """The attention to words and to sentences in a batch, for a model that reads the blocks of `length_blocks`."""
    lengths = mask.sum(-1)
    counts = (lengths > 0).sum(1).tolist()
    blocks = length_blocks(lengths.flatten())
    sizes = [(len(rows), int(lengths.flatten()[rows[-1]])) for rows in blocks]
    longest = max(1, *counts)
    words: list[Level] = []
    sentences: list[Level] = []
    for path in trace.paths:
        calls = [call for call in trace.calls if call.path == path]
        shapes = [(call.shape[0], call.shape[3]) for call in calls]
        if shapes == sizes and not sentences and "sentences" not in path.split("."):
            words.append(Level(path, _by_document(calls, blocks, lengths)))
        elif shapes == [(len(mask), longest)]:
            rows = calls[0].weights.float().cpu().flatten(1, 2)
            sentences.append(Level(path, [row[:, :count] for row, count in zip(rows, counts, strict=True)]))
    return words, sentences


@dataclass(frozen=True)
class DocumentLook(Look):
    """The attention of a model that reads all sentences of a document in one block, as an exported one does."""

    sentences: str | None = None
    """The path of the attention to sentences, if that at `path` is to words."""

    of_words: bool = True
    """Whether the attention at `path` is to words."""

    def weights(self, trace: Trace, count: int, values: Tensor | None = None) -> Tensor:
        """(count, sentences, words) in the whole document, or (count, sentences) without attention to words."""
        found = trace[self.path].weights.float().mean((1, 2))
        if self.sentences is not None:
            of_sentences = trace[self.sentences].weights.float().mean((1, 2))
            return found.reshape(count, of_sentences.shape[1], found.shape[1]) * of_sentences.unsqueeze(-1)
        return found.reshape(count, -1, found.shape[1]) if self.of_words else found


def _by_document(calls: Sequence[Recorded], blocks: Sequence[Tensor], lengths: Tensor) -> list[Tensor]:
    """(heads, words) for each document: the weights of its sentences, which were read in blocks."""
    found: dict[int, Tensor] = {}
    for call, block in zip(calls, blocks, strict=True):
        places = block.tolist()
        for place, length, row in zip(places, lengths.flatten()[block], call.weights.flatten(1, 2), strict=True):
            found[place] = row[:, :length].float().cpu()
    nothing = next(iter(found.values()))[:, :0]
    most = lengths.shape[1]
    return [
        torch.cat([nothing, *(found[place] for place in range(start, start + most) if place in found)], dim=1)
        for start in range(0, lengths.numel(), most)
    ]


def product(axis: TextAxis, words: Tensor, sentences: Tensor) -> Tensor:
    """(1, words): the weight of each word times that of its sentence, both averaged over heads."""
    lengths = torch.tensor([len(group) for group in axis.sentences or ()], dtype=torch.long)
    return words.mean(0, keepdim=True) * sentences.mean(0, keepdim=True).repeat_interleave(lengths, dim=1)
