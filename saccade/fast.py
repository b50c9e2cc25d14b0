"""Fast paths of `Attention.read`: each returns the same as `read_plain`, or None if it does not apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade import masks
from saccade.aggregations import Aggregation
from saccade.checks import check_count
from saccade.distributions import Categorical, Distribution
from saccade.kernels.finite import surely_finite
from saccade.kernels.modes import exporting, visible
from saccade.kernels.nested import map_tensors, tensors_in, with_tensors
from saccade.kernels.online import online_softmax
from saccade.kernels.window import gather_keys
from saccade.memory import Memory
from saccade.reading import Reading, State
from saccade.scores import DotProduct, Score
from saccade.selections import Selection, softmax
from saccade.selections.base import check_finite, full_mask
from saccade.selections.local import LocalSelection


class Attends(Protocol):
    """The parts of an `Attention` that fast paths use."""

    score: Score
    selection: Selection
    aggregation: Aggregation
    dropout: float
    block_size: int | None
    training: bool

    @property
    def independent_queries(self) -> bool: ...

    def read_plain(self, query: Tensor, memory: Memory, state: State) -> Reading: ...


def read_fast(attention: Attends, query: Tensor, memory: Memory, state: State) -> Reading | None:
    """Reads with a stateless score by the first path that applies."""
    reading = _read_by_path(attention, query, memory, state)
    if reading is not None and visible(reading.context):
        _check_scores(attention, query, memory, reading.context)
    return reading


def _check_scores(attention: Attends, query: Tensor, memory: Memory, context: Tensor) -> None:
    """Rejects scores that are not finite, as `Selection.forward` does, without computing them.

    Such scores lead to contexts that are not finite, so one sum usually settles it. Scores are only computed for the
    error message, or if the values themselves are not finite.
    """
    if surely_finite(context) or bool(torch.isfinite(context).all()):
        return
    with torch.no_grad():
        scores = attention.score.compare(query, memory.prepared[0])
        check_finite(scores, full_mask(scores, _resolve(query, memory)))


def _read_by_path(attention: Attends, query: Tensor, memory: Memory, state: State) -> Reading | None:
    exported = exporting()  # an exported graph cannot choose its path by the number of keys
    near = None if exported else _near(attention, query, memory)
    if near is not None:
        reading = _read_by_path(attention, query, near, state) or attention.read_plain(query, near, state)
        return Reading(reading.context, state=state, deferred=_Plain(attention, query, memory, state))
    if not attention.aggregation.weighted_sum or attention.score.feature_wise:
        return None
    selection = attention.selection
    if isinstance(selection, LocalSelection) and selection.windowed and not exported:
        return _read_window(attention, selection, query, memory, state)
    if selection.plain_softmax:
        return _read_blocks(attention, query, memory, state) or _read_fused(attention, query, memory, state)
    return None


def _near(attention: Attends, query: Tensor, memory: Memory) -> Memory | None:
    """The part of the memory that the queries may attend to, if it is known to be smaller than the whole.

    For example the last keys of a growing memory, under `masks.window`.
    """
    if memory.mask is None or not attention.independent_queries or attention.score.feature_wise:
        return None
    queries, keys = query.shape[-2], memory.num_keys
    span = memory.mask.span(queries, keys)
    if span == slice(0, keys):
        return None
    masks.check(memory.mask, query.shape[:-2], queries, keys, query.device)
    prepared = map_tensors(lambda tensor: tensor[..., span, :], memory.prepared)
    mask = masks.as_mask(memory.mask.block(queries, keys, span, query.device))
    return replace(memory, prepared=prepared, values=memory.values[..., span, :], mask=mask, tape=None)


class _Fused(NamedTuple):
    dot: DotProduct
    memory: Memory
    training: bool

    def compute(self) -> Distribution:
        scores = self.dot.scores()
        mask = _resolve(self.dot.query, self.memory)
        return Categorical(softmax(scores, mask=mask), logits=scores, training=self.training)


def _read_fused(attention: Attends, query: Tensor, memory: Memory, state: State) -> Reading | None:
    """Softmax over inner products, by PyTorch's fused kernels."""
    dot = attention.score.as_dot_product(query, memory.prepared[0])
    if dot is None or (exporting() and query.dim() != 4):  # the only form that ONNX has
        return None
    mask = memory.mask
    causal = dot.bias is None and mask is not None and bool(mask.is_causal(query.shape[-2], memory.num_keys))
    bias = None if causal else _resolve(query, memory)
    if dot.bias is not None:
        bias = dot.bias if bias is None else torch.where(bias, dot.bias, -torch.inf)
    context = F.scaled_dot_product_attention(
        dot.query,
        dot.keys,
        memory.values,
        attn_mask=bias,
        dropout_p=attention.dropout if attention.training else 0.0,
        is_causal=causal,
        scale=dot.scale,
    )
    return Reading(context, state=state, deferred=_Fused(dot, memory, attention.training))


def _resolve(query: Tensor, memory: Memory) -> Tensor | None:
    return masks.resolve(memory.mask, query.shape[:-2], query.shape[-2], memory.num_keys, query.device)


class _Plain(NamedTuple):
    attention: Attends
    query: Tensor
    memory: Memory
    state: State

    def compute(self) -> Distribution:
        return self.attention.read_plain(self.query, self.memory, self.state).selection


def check_blocks(attention: Attends, block_size: int) -> None:
    """Rejects an invalid block size, or an attention that cannot be computed in blocks."""
    check_count("block_size", block_size)
    softmax_expectation = attention.selection.plain_softmax and attention.aggregation.weighted_sum
    if not softmax_expectation or not attention.score.pairwise or attention.score.stateful:
        raise ValueError(
            f"block_size={block_size} needs a pairwise score with Softmax() and Expectation(), got "
            f"{type(attention.score).__name__}, {type(attention.selection).__name__} and "
            f"{type(attention.aggregation).__name__}: omit block_size."
        )
    if attention.dropout:
        raise ValueError(f"block_size={block_size} does not support dropout={attention.dropout}: set dropout=0.0.")


def _read_blocks(attention: Attends, query: Tensor, memory: Memory, state: State) -> Reading | None:
    """Softmax over any pairwise score, in blocks of keys."""
    if attention.block_size is None or memory.num_keys <= attention.block_size or torch.compiler.is_compiling():
        return None
    one = attention.score.as_dot_product(query[..., :1, :], memory.prepared[0])
    if one is not None and one.bias is None:  # the fused kernels work in blocks already
        return None
    masks.check(memory.mask, query.shape[:-2], query.shape[-2], memory.num_keys, query.device)
    leaves = tensors_in(memory.prepared[0])

    def compare(query: Tensor, keys: Sequence[Tensor]) -> Tensor:
        return attention.score.compare(query, with_tensors(memory.prepared[0], keys))

    def mask(part: slice) -> Tensor | None:
        if memory.mask is None:
            return None
        return memory.mask.block(query.shape[-2], memory.num_keys, part, query.device)

    parameters = [parameter for parameter in attention.score.parameters() if parameter.requires_grad]
    context = online_softmax(compare, mask, query, memory.values, leaves, parameters, attention.block_size)
    return Reading(context, state=state, deferred=_Plain(attention, query, memory, state))


class _Windowed(NamedTuple):
    weights: Tensor
    places: Tensor
    keys: int
    defective: bool
    training: bool

    def compute(self) -> Distribution:
        probs = self.weights.new_zeros(*self.weights.shape[:-1], self.keys).scatter_add(-1, self.places, self.weights)
        return Categorical(probs, defective=self.defective, training=self.training)


def _read_window(
    attention: Attends, selection: LocalSelection, query: Tensor, memory: Memory, state: State
) -> Reading | None:
    """Scores only a window of keys for each query."""
    keys = memory.num_keys
    if not attention.score.pairwise or keys <= 2 * selection.half_width + 1:
        return None
    if memory.mask is not None and memory.mask.depends_on_query:
        return None
    masks.check(memory.mask, query.shape[:-2], query.shape[-2], keys, query.device)
    counts, ranks = _attendable(memory, query)
    positions, within, distance = selection.window(query, counts.unsqueeze(-1), state.selection)
    if ranks is not None:
        positions = torch.searchsorted(ranks, positions.flatten(-2) + 1).view_as(positions)
    index = positions.clamp(max=keys - 1)
    prepared = map_tensors(lambda tensor: gather_keys(tensor, index), memory.prepared[0])
    scores = attention.score.compare(query.unsqueeze(-2), prepared).squeeze(-2)
    weights = selection.weigh(scores, within, distance)
    dropped = F.dropout(weights, attention.dropout, attention.training)
    same = memory.prepared[0] is memory.values  # for inner products when the values are the keys
    values = prepared if same else gather_keys(memory.values, index)
    context = (dropped.unsqueeze(-2) @ values).squeeze(-2)
    after = State(None, selection.after(state.selection, query.shape[-2]))
    deferred = _Windowed(weights, index, keys, selection.defective, attention.training)
    return Reading(context, state=after, deferred=deferred)


def _attendable(memory: Memory, query: Tensor) -> tuple[Tensor, Tensor | None]:
    """Counts attendable keys (*batch,), and, unless they are the first ones, those up to each key (*batch, keys)."""
    batch = query.shape[:-2]
    if memory.mask is None:
        return torch.full(batch, memory.num_keys, device=query.device), None
    prefix = memory.mask.prefix
    if prefix is not None:
        return prefix.to(query.device).clamp(max=memory.num_keys).expand(batch), None
    mask = masks.resolve(memory.mask, batch, 1, memory.num_keys, query.device)
    assert mask is not None
    ranks = mask.squeeze(-2).cumsum(-1).expand(*batch, memory.num_keys).contiguous()
    return ranks[..., -1], ranks
