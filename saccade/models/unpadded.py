"""BERT's encoder over texts of any lengths, without padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from saccade.kernels.dense import Dense
from saccade.layers import TokenEmbedding, TransformerEncoderLayer

TOKENS = 2048
"""How many tokens are computed together: enough for fast products, few enough to stay in the processor's cache."""


class LayeredEncoder(Protocol):
    """What `Unpadded` needs of a model."""

    embedding: TokenEmbedding
    layers: nn.ModuleList

    def embed(self, tokens: Tensor, segments: Tensor | None = None, places: Tensor | None = None) -> Tensor: ...
    def pool(self, states: Tensor, mask: Tensor) -> Tensor: ...


class Group(NamedTuple):
    """Texts of equal length in a batch."""

    start: int
    """Where their tokens begin in the batch."""

    texts: int
    length: int

    def of(self, tokens: Tensor) -> Tensor:
        """(texts, length, ...): their part of (tokens, ...)."""
        part = tokens[self.start : self.start + self.texts * self.length]
        return part.view(self.texts, self.length, *tokens.shape[1:])


class Unpadded:
    """Computes what `Bert` computes in evaluation mode, without gradients; faster if lengths are mixed.

    Texts are sorted by length. For everything that concerns single tokens, the tokens of a batch are concatenated in
    one matrix, without padding; attention runs over groups of texts of equal length, without masks. It therefore works
    with every score and selection. The weights of linear layers are copied and packed for the processor.

    Args:
        model: a `Bert`.
    """

    def __init__(self, model: LayeredEncoder) -> None:
        self.model = model
        self.layers = [_Layer(layer) for layer in model.layers if isinstance(layer, TransformerEncoderLayer)]

    @torch.no_grad()
    def vectors(self, texts: Sequence[Sequence[int]], first: Sequence[int] | None = None) -> Tensor:
        """(texts, dim): each text as one vector, as the model pools it.

        Args:
            texts: the ids of each, with the special ones.
            first: how many tokens of each belong to the first of two texts; all by default.
        """
        model = self.model
        found = model.embedding.weight.new_empty(len(texts), model.embedding.weight.shape[1])
        for numbers, groups, states in self._batches(texts, first):
            parts = [group.of(states) for group in groups]
            found[numbers] = torch.cat([model.pool(part, part.new_ones(part.shape[:2]).bool()) for part in parts])
        return found

    @torch.no_grad()
    def states(self, texts: Sequence[Sequence[int]], first: Sequence[int] | None = None) -> list[Tensor]:
        """(length, dim) for each text: the states of its tokens."""
        found: dict[int, Tensor] = {}
        for numbers, groups, states in self._batches(texts, first):
            parts = [part for group in groups for part in group.of(states)]
            found |= zip(numbers, parts, strict=True)
        return [found[number] for number in range(len(texts))]

    def _batches(
        self, texts: Sequence[Sequence[int]], first: Sequence[int] | None
    ) -> Iterator[tuple[list[int], list[Group], Tensor]]:
        """The numbers of the texts of each batch, their groups, and the states of their tokens (tokens, dim)."""
        if not all(map(len, texts)):
            raise ValueError("A text without any token cannot be encoded: each begins with [CLS].")
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        start = 0
        while start < len(order):
            end, tokens = start, 0
            while end < len(order) and (end == start or tokens + len(texts[order[end]]) <= TOKENS):
                tokens += len(texts[order[end]])
                end += 1
            numbers = order[start:end]
            start = end
            groups, begin = [], 0
            for length, several in groupby(len(texts[number]) for number in numbers):
                group = Group(begin, len(list(several)), length)
                groups.append(group)
                begin += group.texts * length
            own = None if first is None else [first[number] for number in numbers]
            yield numbers, groups, self._states([texts[number] for number in numbers], groups, own)

    def _states(self, texts: Sequence[Sequence[int]], groups: list[Group], first: list[int] | None) -> Tensor:
        device = self.model.embedding.weight.device
        ids = torch.tensor([token for text in texts for token in text], device=device)
        places = torch.cat([torch.arange(group.length, device=device).repeat(group.texts) for group in groups])
        segments = None
        if first is not None:
            counts = torch.tensor([len(text) for text in texts], device=device)
            segments = (places >= torch.tensor(first, device=device).repeat_interleave(counts)).long()
        states = self.model.embed(ids, segments, places)
        for layer in self.layers:
            states = layer(states, groups)
        return states


class _Layer:
    """One layer of the encoder over a batch of groups."""

    def __init__(self, layer: TransformerEncoderLayer) -> None:
        heads, inner = layer.self_attention, layer.feed_forward
        self.attention, self.num_heads = heads.attention, heads.num_heads
        self.project = Dense(heads.query_proj, heads.key_proj, heads.value_proj)
        self.output = Dense(heads.output_proj)
        self.hidden = Dense(inner.hidden_proj, activation=inner.activation)
        self.back = Dense(inner.output_proj)
        self.after_attention = layer.around_attention.norm
        self.after_feed_forward = layer.around_feed_forward.norm

    def __call__(self, states: Tensor, groups: Sequence[Group]) -> Tensor:
        projected = self.project(states).unflatten(1, (3, self.num_heads, -1))
        context = torch.empty_like(states)
        for group in groups:
            query, keys, values = group.of(projected).permute(2, 0, 3, 1, 4)
            read = self.attention(query, keys, values).context
            group.of(context).copy_(read.transpose(1, 2).flatten(2))
        states = self.after_attention(self.output(context).add_(states))
        changed: Tensor = self.after_feed_forward(self.back(self.hidden(states)).add_(states))
        return changed
