"""Attention: a score, a selection and an aggregation.

context = E[ f(values, z) ],   z ~ p(z | query, keys)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade import masks
from saccade.aggregations import Aggregation, Expectation, FeatureWise
from saccade.distributions import Bernoulli, Categorical, Distribution
from saccade.fast import check_blocks, read_fast
from saccade.kernels.nested import tensors_in
from saccade.masks import Mask
from saccade.memory import Memory, check_memory, new_token
from saccade.reading import Reading, State
from saccade.scores import Score
from saccade.selections import Selection, selections
from saccade.selections.base import full_mask

Change = Callable[[Tensor, Tensor], Tensor]
"""Maps weights (*batch, queries, keys) and the mask, bool of the same shape, to the weights to read with."""


class Watcher(Protocol):
    """What sees the readings of attention, and may change them: `saccade.record`."""

    def watches(self) -> bool: ...
    def read(self, attention: Attention, query: Tensor | None, memory: Memory, state: State | None) -> Reading: ...
    def note(self, reading: Reading) -> bool: ...


watchers: list[Watcher] = []
"""At most one, which is here while any thread records."""


class Attention(nn.Module):
    r"""Reads a memory of key-value pairs.

    .. math:: c_i = \mathbb{E}_{z \sim p(z \mid q_i, k)}[f(v, z)]

    The score measures how well a query matches a key, the selection turns scores into a distribution over positions,
    and the aggregation reads the values. Parts that are not given default to softmax and the expectation, unless the
    score or the selection names another default.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim), values (*batch, keys, value_dim), mask
        bool, True = may be attended, broadcastable to (*batch, queries, keys) -> `Reading` with context
        (*batch, queries, value_dim) and weights (*batch, queries, keys).

    Args:
        score: how well a query matches a key.
        selection: defaults to the score's default selection, or `Softmax()`.
        aggregation: defaults to the selection's default aggregation, or `Expectation()`.
        dropout: dropout rate of the weights in training; `reading.weights` are the weights before dropout.
        block_size: how many keys to score at a time, so that memory does not grow with queries times keys; for
            pairwise scores with softmax and expectation. Inner products use PyTorch's fused kernels instead.
    """

    def __init__(
        self,
        *,
        score: Score,
        selection: Selection | None = None,
        aggregation: Aggregation | None = None,
        dropout: float = 0.0,
        block_size: int | None = None,
    ) -> None:
        super().__init__()
        for part, kind, name in (
            (score, Score, "score"),
            (selection, Selection, "selection"),
            (aggregation, Aggregation, "aggregation"),
        ):
            if not isinstance(part, kind) and not (part is None and name != "score"):
                raise TypeError(
                    f"{name} must be a {kind.__name__}, got {part!r}; create one with saccade.{name}s.create(name)."
                )
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        self.token = new_token()
        self.score = score
        self.selection = selection or selections.create(score.default_selection)
        self.aggregation = (
            aggregation
            or self.selection.default_aggregation()
            or (FeatureWise() if score.feature_wise else Expectation())
        )
        self.dropout = dropout
        self.block_size = block_size
        if score.feature_wise != self.aggregation.feature_wise:
            raise ValueError(
                f"{type(score).__name__} and {type(self.aggregation).__name__} do not work together: use a "
                "feature-wise score with the FeatureWise aggregation, and only with it."
            )
        for part in (self.selection, self.aggregation):
            if score.stateful and part.joins_queries:
                raise ValueError(
                    f"{type(part).__name__} needs all queries at once, but {type(score).__name__} handles them one by "
                    f"one: choose a stateless score, or replace {type(part).__name__}."
                )
        if block_size is not None:
            check_blocks(self, block_size)

    def forward(
        self,
        query: Tensor | None,
        keys: Tensor,
        values: Tensor | None = None,
        *,
        mask: Tensor | Mask | None = None,
        state: State | None = None,
    ) -> Reading:
        """Prepares a memory and reads it; `values` default to `keys`."""
        return self.read(query, self.prepare(keys, values, mask=mask), state=state)

    def prepare(
        self, keys: Tensor, values: Tensor | None = None, *, mask: Tensor | Mask | None = None, start: int = 0
    ) -> Memory:
        """Writes a memory: the part of the computation that does not depend on the query.

        `start` is the position of the first key, for keys that are appended to an existing memory.
        """
        own_values = values is not None
        values = keys if values is None else values
        if keys.dim() < 2 or keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                f"keys (*batch, keys, key_dim) and values (*batch, keys, value_dim) must agree in all but the last "
                f"axis, got keys {tuple(keys.shape)} and values {tuple(values.shape)}."
            )
        if start and not self.score.appendable:
            raise ValueError(f"{type(self.score).__name__} mixes neighbouring keys: prepare all keys in one call.")
        if not values.is_floating_point() and not self.aggregation.reads_ids:
            raise TypeError(
                f"values must be floating point for {type(self.aggregation).__name__}, got {values.dtype}: embed them "
                "first, or read token ids with the Copy aggregation."
            )
        whole = None if mask is None else masks.as_mask(mask)
        over_keys = _over_keys(whole, keys)
        if over_keys is not None:  # padding may contain anything, even NaN: keep it out of the products
            same = values is keys
            keys = keys.masked_fill(~over_keys.unsqueeze(-1), 0)
            values = keys if same else values.masked_fill(~over_keys.unsqueeze(-1), 0)
        prepared = (
            self.score.prepare(keys, mask=over_keys, start=start),
            self.selection.prepare(keys, mask=over_keys, start=start),
        )
        return Memory(prepared, values, whole, self, own_values)

    def read(self, query: Tensor | None, memory: Memory, *, state: State | None = None) -> Reading:
        """Reads with one or more queries; `state` is that of the previous reading, None at the first."""
        for watcher in watchers:
            if watcher.watches():
                return watcher.read(self, query, memory, state)
        return self.read_unwatched(query, memory, state=state)

    def read_unwatched(self, query: Tensor | None, memory: Memory, *, state: State | None = None) -> Reading:
        """Like `read`, but `saccade.record` does not see it."""
        query = self._check_query(query, memory)
        state = self._check_state(state)
        if self.score.stateful:
            return self._read_step_by_step(query, memory, state)
        return read_fast(self, query, memory, state) or self.read_plain(query, memory, state)

    @property
    def independent_queries(self) -> bool:
        """Whether queries are read independently, so that several hypotheses can be queries of one memory."""
        selection = self.selection
        apart = not (selection.stateful or selection.joins_queries or selection.stochastic)
        return apart and self.score.pairwise and not self.score.stateful and not self.aggregation.joins_queries

    def read_changed(
        self, query: Tensor | None, memory: Memory, change: Change, *, state: State | None = None
    ) -> Reading:
        """Like `read`, but with the weights that `change` returns: an intervention.

        Weights that sum to less than 1 read less. A stateful score sees the changed weights; a stateful selection
        continues from its own. Stateful scores call `change` once per query.
        """
        query = self._check_query(query, memory)
        state = self._check_state(state)
        if self.score.stateful:
            return self._read_step_by_step(query, memory, state, change)
        return self.read_plain(query, memory, state, change)

    def watched(self) -> bool:
        """Whether `saccade.record` is recording this thread: then every reading must go through `read`."""
        return any(watcher.watches() for watcher in watchers)

    def note(self, reading: Reading) -> bool:
        """Passes a reading that a kernel computed for many steps to `saccade.record`.

        False if its weights are to be changed: then read step by step.
        """
        return all(watcher.note(reading) for watcher in watchers)

    def read_plain(self, query: Tensor, memory: Memory, state: State, change: Change | None = None) -> Reading:
        """The reference definition: score all keys, select, aggregate. Fast paths give the same result."""
        scores = self.score.compare(query, memory.prepared[0])
        return self._read_scored(scores, query, memory, self._mask(query, memory), state, change)

    def _mask(self, query: Tensor, memory: Memory) -> Tensor | None:
        mask = masks.resolve(memory.mask, query.shape[:-2], query.shape[-2], memory.num_keys, query.device)
        if mask is not None and self.score.feature_wise and mask.dim() > 2:
            return mask.unsqueeze(-3)
        return mask

    def _read_scored(
        self,
        scores: Tensor,
        query: Tensor,
        memory: Memory,
        mask: Tensor | None,
        state: State,
        change: Change | None = None,
    ) -> Reading:
        own = self.selection(scores, mask, query=query, prepared=memory.prepared[1], state=state.selection)
        selection = own if change is None else self._changed(own, change, full_mask(scores, mask))
        weights = F.dropout(self.aggregation.weights(selection), self.dropout, self.training)
        context = self.aggregation(weights, memory.values, query=query, scores=scores, mask=mask)
        return Reading(context, selection, State(None, self.selection.advance(state.selection, own)))

    def _changed(self, selection: Distribution, change: Change, mask: Tensor) -> Distribution:
        own = selection.marginals
        weights = change(own, mask)
        if weights is own:
            return selection
        if type(selection).coefficients is not Distribution.coefficients:
            raise TypeError(
                f"{type(self.selection).__name__} reads values through a basis, not by weights: there are no weights "
                "to change."
            )
        if isinstance(selection, Bernoulli):  # weights are probabilities, and a hard reading picks any number of keys
            return Bernoulli(weights, training=selection.training)
        return Categorical(weights, defective=True, training=selection.training)

    def _read_step_by_step(self, query: Tensor, memory: Memory, state: State, change: Change | None = None) -> Reading:
        prepared = memory.prepared[0]
        mask = self._mask(query, memory)
        if state.score is None:
            state = state._replace(score=self.score.begin(query, prepared, _over_keys(memory.mask, memory.values)))
        readings = []
        for i in range(query.shape[-2]):
            one = query[..., i : i + 1, :]
            row = mask if mask is None or mask.dim() < 2 or mask.shape[-2] == 1 else mask[..., i : i + 1, :]
            scores = self.score.compare(one, prepared, state.score)
            reading = self._read_scored(scores, one, memory, row, state, change)
            after = self.score.advance(state.score, reading.weights, one, prepared)
            state = State(after, reading.state.selection)
            readings.append(reading)
        if not readings:
            return self._read_scored(self.score.compare(query, prepared, state.score), query, memory, mask, state)
        context = torch.cat([reading.context for reading in readings], dim=-2)
        selections = [reading.selection for reading in readings]
        if len({type(each) for each in selections}) > 1:  # only some queries were changed
            selections = [Categorical(each.marginals, defective=True, training=each.training) for each in selections]
        selection = type(selections[0]).cat(selections)
        return Reading(context, selection, state)

    def _check_state(self, state: State | None) -> State:
        if state is None:
            return State()
        if not isinstance(state, State):
            raise TypeError(
                f"state must be the `state` of a reading, or None at the first step, got {type(state).__name__}."
            )
        keeps = self.selection.stateful or self.selection.stochastic
        for part, kept, may in (
            (self.score, state.score, self.score.stateful),
            (self.selection, state.selection, keeps),
        ):
            if kept is not None and not may:
                raise ValueError(
                    f"state comes from another attention: {type(part).__name__} keeps no state between steps."
                )
        return state

    def _check_query(self, query: Tensor | None, memory: Memory) -> Tensor:
        check_memory(memory, self)
        if query is None:
            if not self.score.query_free:
                raise ValueError(f"query is None, but {type(self.score).__name__} compares it with the keys.")
            prepared = tensors_in(memory.prepared)[0]  # not the values, which may be token ids
            return prepared.new_empty(*memory.values.shape[:-2], 1, 0)
        if query.dim() < 2:
            raise ValueError(
                f"query must be (*batch, queries, query_dim), got {tuple(query.shape)}: for a single query, pass "
                "query.unsqueeze(-2)."
            )
        if query.shape[:-2] != memory.values.shape[:-2]:
            raise ValueError(
                f"query {tuple(query.shape)} and values {tuple(memory.values.shape)} must agree in their batch "
                f"dimensions, got {tuple(query.shape[:-2])} and {tuple(memory.values.shape[:-2])}."
            )
        return query


def _over_keys(mask: Mask | None, keys: Tensor) -> Tensor | None:
    """(*batch, keys): False for keys that no query may attend; None if no such keys are known.

    Heads that share keys may mask different ones: then every key counts as attendable.
    """
    over_keys = None if mask is None else mask.over_keys(keys.shape[-2], keys.device)
    if over_keys is None:
        return None
    batch = keys.shape[:-1]
    ours = (1,) * (len(batch) - over_keys.dim()) + tuple(over_keys.shape)
    fits = len(ours) == len(batch) and all(have in (1, want) for have, want in zip(ours, batch, strict=True))
    return over_keys if fits else None


def check_one_by_one(attention: Attention) -> None:
    """Rejects attention that needs all queries at once, for decoders that generate one token at a time."""
    for part in (attention.selection, attention.aggregation):
        if part.joins_queries:
            raise ValueError(
                f"{type(part).__name__} needs all queries at once, but a decoder has one at a time: use it for "
                "self-attention in an encoder. For structured selection in a decoder, use LinearChain."
            )


def check_growing(attention: Attention) -> None:
    """Rejects attention that cannot read a past which grows by one key per step."""
    check_one_by_one(attention)
    score, selection = attention.score, attention.selection
    if score.stateful or not score.appendable:
        raise ValueError(
            f"{type(score).__name__} cannot attend to a growing past: it mixes neighbouring keys or keeps weights "
            "over a fixed number of keys. Use it for cross-attention only."
        )
    if selection.stateful and not selection.grows:
        raise ValueError(
            f"{type(selection).__name__} cannot attend to a growing past: it needs all keys from the start. Use it "
            "for cross-attention only."
        )
