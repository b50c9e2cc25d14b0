"""Attention to several sources: one for each, and optionally one more over what they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.encoders import EncodedSources
from saccade.memory import Memory
from saccade.reading import Reading, State


class SourceMemory(NamedTuple):
    """A memory for each source, with the masks of its positions, of which the memory may contain fewer."""

    memories: tuple[Memory, ...]
    masks: tuple[Tensor, ...]


class SourceReading:
    """What was read of all sources: like a `Reading`, over the positions of all sources one after another."""

    def __init__(self, context: Tensor, readings: Sequence[Reading], widths: Sequence[int], second: Reading | None):
        self.context = context
        self.state = tuple(reading.state for reading in readings)
        self._readings, self._widths, self._second = readings, widths, second

    @property
    def weights(self) -> Tensor:
        """(batch, queries, positions); those of each source sum to 1, or all of them if there is a second attention."""
        parts = []
        for number, (reading, width) in enumerate(zip(self._readings, self._widths, strict=True)):
            part = F.pad(reading.weights, (0, width - reading.weights.shape[-1]))
            if self._second is not None:
                part = part * self._second.weights[..., 0, number : number + 1]
            parts.append(part)
        return torch.cat(parts, dim=-1)


class SourceAttentions(nn.Module):
    r"""An attention to each source, whose contexts are concatenated, or read by a second attention.

    .. math:: c_k = \mathrm{attention}_k(q, h^{(k)}), \qquad c = [c_1; \dots; c_K]
        \quad\text{or}\quad c = \mathrm{attention}(q, (U_1 c_1, \dots, U_K c_K))

    A missing source has a zero context, and no weight in the second attention.

    Shapes:
        query (batch, queries, query_dim), sources (batch, positions, context_dim) -> context (batch, queries,
        output_dim).

    Reference:
        Zoph & Knight (2016), arXiv:1601.00710, section 4; the second attention: Libovický & Helcl (2017),
        arXiv:1704.06567, section 3.2.

    Args:
        attentions: one for each source.
        context_dims: features of each source's states.
        second: the attention over contexts; its keys have `dim` features.
        dim: features of the projected contexts, needed for `second`.
    """

    def __init__(
        self,
        *,
        attentions: Sequence[Attention],
        context_dims: Sequence[int],
        second: Attention | None = None,
        dim: int | None = None,
    ) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(attentions)
        self.second = second
        self.output_dim = sum(context_dims)
        self.projs: nn.ModuleList | None = None
        if second is not None:
            if dim is None:
                raise ValueError("A second attention needs dim, the features of the projected contexts.")
            self.output_dim = dim
            projs = [nn.Linear(own, dim, bias=False) for own in context_dims]
            for proj in projs:
                nn.init.xavier_uniform_(proj.weight)
            self.projs = nn.ModuleList(projs)

    def each(self) -> list[Attention]:
        """The attentions in the order of the sources."""
        return [attention for attention in self.attentions if isinstance(attention, Attention)]

    def begin(self) -> tuple[State, ...]:
        """The states before the first reading."""
        return tuple(State() for _ in self.attentions)

    def remember(self, encoded: EncodedSources) -> SourceMemory:
        """Writes a memory of each source."""
        memories, masks = [], []
        for attention, source in zip(self.each(), encoded.sources, strict=True):
            most = attention.score.max_keys
            states, mask = source.states[:, :most], source.mask[:, :most]
            memories.append(attention.prepare(states, mask=mask.unsqueeze(1)))
            masks.append(source.mask)
        return SourceMemory(tuple(memories), tuple(masks))

    def read(self, query: Tensor, memory: SourceMemory, *, state: Sequence[State]) -> SourceReading:
        """Reads every source with the same queries."""
        triples = zip(self.each(), memory.memories, state, strict=True)
        readings = [attention.read(query, own, state=before) for attention, own, before in triples]
        widths = [mask.shape[1] for mask in memory.masks]
        contexts = [reading.context for reading in readings]
        if self.second is None or self.projs is None:
            return SourceReading(torch.cat(contexts, dim=-1), readings, widths, None)
        keys = torch.stack([proj(own) for proj, own in zip(self.projs, contexts, strict=True)], dim=-2)
        present = torch.stack([mask.any(1) for mask in memory.masks], dim=-1)[:, None, None]
        second = self.second(query.unsqueeze(-2), keys, mask=present)
        return SourceReading(second.context.squeeze(-2), readings, widths, second)
