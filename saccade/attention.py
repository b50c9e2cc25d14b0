"""Attention: a score, a selection and an aggregation.

context = E[ f(values, z) ],   z ~ p(z | query, keys)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from saccade import masks
from saccade.aggregations import Aggregation, Expectation, FeatureWise
from saccade.distributions import Categorical, Distribution
from saccade.masks import Mask
from saccade.scores import DotProduct, Score
from saccade.selections import Selection, Softmax, softmax


class State(NamedTuple):
    """What attention remembers between steps: what the score and what the selection carry on."""

    score: Any = None
    selection: Any = None


class Reader(Protocol):
    """What can write and read a memory: `Attention` and `MultiHead`."""

    def prepare(
        self, keys: Tensor, values: Tensor | None = None, *, mask: Tensor | Mask | None = None, start: int = 0
    ) -> Memory: ...


@dataclass(frozen=True, eq=False)
class Memory:
    """Keys and values, written once and read by any number of queries.

    Args:
        prepared: what the score and the selection keep of the keys.
        values: (*batch, keys, value_dim).
        mask: which keys may be attended, if not all.
        reader: the attention that wrote it.
    """

    prepared: Any
    values: Tensor
    mask: Mask | None
    reader: Reader

    def __len__(self) -> int:
        """The number of keys."""
        return self.values.shape[-2]

    def append(self, keys: Tensor, values: Tensor | None = None, *, mask: Tensor | None = None) -> Memory:
        """A memory with more keys at the end; this one stays as it is.

        Args:
            keys, values: the new ones, (*batch, new, dim), prepared with the parameters of the reader.
            mask: bool (*batch, 1, new), True = may be attended; all of them by default.
        """
        old, new = len(self), keys.shape[-2]
        added = self.reader.prepare(keys, values, mask=mask, start=old)
        grown = None if self.mask is None else self.mask.grow(old, new)
        if added.mask is not None:
            late = added.mask.tensor(1, new)
            if late.shape[-2] != 1:
                raise ValueError(f"The mask of appended keys is (*batch, 1, {new}), got {tuple(late.shape)}.")
            late = torch.cat([late.new_ones(*late.shape[:-1], old), late.expand(*late.shape[:-1], new)], dim=-1)
            grown = masks.as_mask(late) if grown is None else grown & late
        prepared = pytree.tree_map(lambda a, b: torch.cat([a, b], dim=-2), self.prepared, added.prepared)
        return Memory(prepared, torch.cat([self.values, added.values], dim=-2), grown, self.reader)

    def index(self, rows: Tensor) -> Memory:
        """The memory of the chosen rows of the first batch dimension, as beam search needs it."""
        prepared = pytree.tree_map(lambda tensor: tensor[rows], self.prepared)
        return replace(
            self, prepared=prepared, values=self.values[rows], mask=None if self.mask is None else self.mask.index(rows)
        )


class Reading:
    """What was read: the context, the selection it was read by, and the state for the next step.

    Where a fused kernel made the context, the selection is computed when it is first looked at.
    """

    def __init__(self, context: Tensor, selection: Distribution | Deferred, state: State) -> None:
        self.context = context
        self._selection = selection
        self.state = state

    @property
    def selection(self) -> Distribution:
        if isinstance(self._selection, Deferred):
            self._selection = self._selection.compute()
        return self._selection

    @property
    def weights(self) -> Tensor:
        """The attention weights before dropout, (*batch, queries, keys): `selection.marginals`."""
        return self.selection.marginals

    def with_context(self, context: Tensor) -> Reading:
        return Reading(context, self._selection, self.state)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.context, self.selection, self.state))

    def __repr__(self) -> str:
        selection = "not computed yet" if isinstance(self._selection, Deferred) else type(self._selection).__name__
        return f"Reading(context={tuple(self.context.shape)}, selection={selection})"


class Deferred(NamedTuple):
    """A softmax over inner products that nobody has looked at yet."""

    dot: DotProduct
    mask: Tensor | None
    training: bool

    def compute(self) -> Distribution:
        scores = self.dot.scores()
        return Categorical(softmax(scores, mask=self.mask), logits=scores, training=self.training)


class Attention(nn.Module):
    r"""Reads a memory of key-value pairs.

    .. math:: c_i = \mathbb{E}_{z \sim p(z \mid q_i, k)}[f(v, z)]

    The score says how well a query matches a key, the selection what distribution over positions follows, the
    aggregation what is read from the values. What is not given follows from the score and the selection: softmax
    and the expectation, unless they name others.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim), values (*batch, keys, value_dim), mask
        bool, True = may be attended, broadcastable to (*batch, queries, keys) -> `Reading` with context
        (*batch, queries, value_dim) and weights (*batch, queries, keys).
    """

    def __init__(
        self,
        *,
        score: Score,
        selection: Selection | None = None,
        aggregation: Aggregation | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        for part, kind, name in (
            (score, Score, "score"),
            (selection, Selection, "selection"),
            (aggregation, Aggregation, "aggregation"),
        ):
            if not isinstance(part, kind) and not (part is None and name != "score"):
                raise TypeError(
                    f"{name} must be a {kind.__name__}, got {part!r}; saccade.{name}s.create(name) makes one."
                )
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        self.score = score
        self.selection = selection or score.default_selection() or Softmax()
        self.aggregation = (
            aggregation
            or self.selection.default_aggregation()
            or (FeatureWise() if score.feature_wise else Expectation())
        )
        self.dropout = dropout
        if score.feature_wise != self.aggregation.feature_wise:
            raise ValueError(
                f"{type(score).__name__} and {type(self.aggregation).__name__} do not fit: a feature-wise score goes "
                "with the FeatureWise aggregation, and only with it."
            )

    def forward(
        self,
        query: Tensor | None,
        keys: Tensor,
        values: Tensor | None = None,
        *,
        mask: Tensor | Mask | None = None,
        state: State | None = None,
    ) -> Reading:
        """Prepares and reads; `values` default to `keys`."""
        return self.read(query, self.prepare(keys, values, mask=mask), state=state)

    def prepare(
        self, keys: Tensor, values: Tensor | None = None, *, mask: Tensor | Mask | None = None, start: int = 0
    ) -> Memory:
        """Writes a memory: the half of the work that does not depend on the query.

        `start` is the position of the first key, for keys that will be appended to another memory.
        """
        values = keys if values is None else values
        if keys.dim() < 2 or keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                f"keys (*batch, keys, key_dim) and values (*batch, keys, value_dim) must agree in all but the last "
                f"axis, got keys {tuple(keys.shape)} and values {tuple(values.shape)}."
            )
        if start and not self.score.appendable:
            raise ValueError(f"{type(self.score).__name__} mixes neighbouring keys: prepare all keys at once.")
        whole = None if mask is None else masks.as_mask(mask)
        over_keys = None if whole is None else whole.over_keys(keys.shape[-2], keys.device)
        prepared = (
            self.score.prepare(keys, mask=over_keys, start=start),
            self.selection.prepare(keys, mask=over_keys, start=start),
        )
        return Memory(prepared, values, whole, self)

    def read(self, query: Tensor | None, memory: Memory, *, state: State | None = None) -> Reading:
        """Reads with one query or several at once; `state` is that of the reading before, None at the start."""
        query = self._check_query(query, memory)
        mask = masks.resolve(memory.mask, query.shape[:-2], query.shape[-2], len(memory), query.device)
        if mask is not None and self.score.feature_wise:
            mask = mask.unsqueeze(-3) if mask.dim() >= 3 else mask
        state = state or State()
        if self.score.stateful:
            return self._read_step_by_step(query, memory, mask, state)
        if self._fusable:
            dot = self.score.as_dot_product(query, memory.prepared[0])
            if dot is not None:
                return self._read_fused(dot, memory.values, mask, state)
        scores = self.score.compare(query, memory.prepared[0])
        return self._read_scored(scores, query, memory, mask, state)

    @property
    def _fusable(self) -> bool:
        return isinstance(self.selection, Softmax) and self.selection.plain and type(self.aggregation) is Expectation

    def _read_scored(self, scores: Tensor, query: Tensor, memory: Memory, mask: Tensor | None, state: State) -> Reading:
        selection = self.selection(scores, mask, query=query, prepared=memory.prepared[1], state=state.selection)
        weights = F.dropout(self.aggregation.weights(selection), self.dropout, self.training)
        context = self.aggregation(weights, memory.values, query=query, scores=scores, mask=mask)
        return Reading(context, selection, State(None, self.selection.advance(state.selection, selection)))

    def _read_fused(self, dot: DotProduct, values: Tensor, mask: Tensor | None, state: State) -> Reading:
        context = fused_softmax_expectation(dot, values, mask, self.dropout if self.training else 0.0)
        return Reading(context, Deferred(dot, mask, self.training), state)

    def _read_step_by_step(self, query: Tensor, memory: Memory, mask: Tensor | None, state: State) -> Reading:
        prepared = memory.prepared[0]
        if state.score is None:
            over_keys = None if memory.mask is None else memory.mask.over_keys(len(memory), query.device)
            state = state._replace(score=self.score.begin(query, prepared, over_keys))
        readings = []
        for i in range(query.shape[-2]):
            one = query[..., i : i + 1, :]
            row = mask if mask is None or mask.dim() < 2 or mask.shape[-2] == 1 else mask[..., i : i + 1, :]
            scores = self.score.compare(one, prepared, state.score)
            reading = self._read_scored(scores, one, memory, row, state)
            after = self.score.advance(state.score, reading.weights, one, prepared)
            state = State(after, reading.state.selection)
            readings.append(reading)
        if not readings:
            return self._read_scored(self.score.compare(query, prepared, state.score), query, memory, mask, state)
        context = torch.cat([reading.context for reading in readings], dim=-2)
        selection = type(readings[0].selection).cat([reading.selection for reading in readings])
        return Reading(context, selection, state)

    def _check_query(self, query: Tensor | None, memory: Memory) -> Tensor:
        if query is None:
            if not self.score.query_free:
                raise ValueError(f"query is None, but {type(self.score).__name__} compares it with the keys.")
            return memory.values.new_empty(*memory.values.shape[:-2], 1, 0)
        if query.dim() < 2:
            raise ValueError(
                f"query must be (*batch, queries, query_dim), got {tuple(query.shape)}: a single query has "
                "queries = 1, query.unsqueeze(-2)."
            )
        if query.shape[:-2] != memory.values.shape[:-2]:
            raise ValueError(
                f"query {tuple(query.shape)} and values {tuple(memory.values.shape)} must agree in their batch "
                f"dimensions, got {tuple(query.shape[:-2])} and {tuple(memory.values.shape[:-2])}."
            )
        return query


def fused_softmax_expectation(dot: DotProduct, values: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """The context of softmax attention over inner products, by PyTorch's fused kernels."""
    bias: Tensor | None = mask
    if dot.bias is not None:
        bias = dot.bias
        if mask is not None:
            bias = torch.where(mask, bias, -torch.inf)
    context: Tensor = F.scaled_dot_product_attention(
        dot.query, dot.keys, values, attn_mask=bias, dropout_p=dropout, scale=dot.scale
    )
    return context
