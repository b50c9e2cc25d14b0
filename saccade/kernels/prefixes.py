"""A recurrent unit that reads every prefix of many sequences backwards, all prefixes at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Prefixes(NamedTuple):
    """Every prefix of sequences of different lengths, each read from its last element to the first.

    Elements are numbered one sequence after another, and prefixes by their last element. Prefixes are sorted by length,
    the longest first, so that step s concerns the first `counts[s]` of them. Rows are the pairs of a prefix and a step.

    Args:
        ends: (elements,): the last element of each prefix, in the order of the prefixes.
        counts: how many prefixes have a step s.
        prefixes: (rows,): the place of each row's prefix among the sorted ones.
        elements: (rows,): the element that each row reads.
    """

    ends: Tensor
    counts: list[int]
    prefixes: Tensor
    elements: Tensor

    @staticmethod
    def of(mask: Tensor) -> Prefixes:
        """The prefixes of the real elements of mask, bool (batch, length), padding last."""
        places = (mask.cumsum(1) - 1)[mask]  # of each element in its own sequence: the steps before the last
        ends = places.argsort(descending=True, stable=True)
        counts = torch.bincount(places).flip(0).cumsum(0).flip(0).tolist() if len(places) else []
        several = torch.tensor(counts, dtype=torch.long, device=mask.device)
        steps = torch.repeat_interleave(torch.arange(len(counts), device=mask.device), several)
        starts = several.cumsum(0) - several
        prefixes = torch.arange(len(steps), device=mask.device) - starts.repeat_interleave(several)
        return Prefixes(ends, counts, prefixes, ends[prefixes] - steps)


def prefix_gru_reference(projected: Tensor, weight: Tensor, inner: Tensor, prefixes: Prefixes) -> Tensor:
    """The states of a GRU (`saccade.layers.gru.gru_step`, reset after the product) in each row.

    Shapes:
        projected (elements, 3 * hidden): the projected inputs; weight (3 * hidden, hidden), inner (hidden,)
        -> (rows, hidden).
    """
    size = weight.shape[1]
    states: list[Tensor] = []
    hidden = projected.new_zeros(len(prefixes.ends), size)
    for step, count in enumerate(prefixes.counts):
        hidden = hidden[:count]
        row = projected[prefixes.ends[:count] - step]
        product = hidden @ weight.T
        reset, update = (row[:, : 2 * size] + product[:, : 2 * size]).sigmoid().chunk(2, -1)
        candidate = (row[:, 2 * size :] + reset * (product[:, 2 * size :] + inner)).tanh()
        hidden = candidate + update * (hidden - candidate)
        states.append(hidden)
    return torch.cat(states) if states else hidden


def prefix_gru(projected: Tensor, weight: Tensor, inner: Tensor, prefixes: Prefixes) -> Tensor:
    """`prefix_gru_reference`: inputs are projected once for all prefixes, and prefixes that ended cost nothing."""
    with torch.autocast(projected.device.type, enabled=False):
        if torch.compiler.is_compiling() or not prefixes.counts:
            return prefix_gru_reference(projected, weight, inner, prefixes)
        found: Tensor = _PrefixGRU.apply(projected.to(weight.dtype), weight, inner, prefixes)  # type: ignore[no-untyped-call]
        return found


class _PrefixGRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, inner: Tensor, prefixes: Prefixes) -> Tensor:
        size, rows = weight.shape[1], len(prefixes.elements)
        states = projected.new_empty(rows, size)
        gates = projected.index_select(0, prefixes.elements)
        inside = projected.new_empty(rows, size)
        transposed = weight.T
        start = before = 0
        for step, count in enumerate(prefixes.counts):
            here = slice(start, start + count)
            gate, within, after = gates[here], inside[here], states[here]
            reset, update, candidate = gate.chunk(3, -1)
            if step == 0:  # from a state of zeros
                within.copy_(inner.expand_as(within))
                gate[:, : 2 * size].sigmoid_()
                candidate.addcmul_(reset, within).tanh_()
                torch.addcmul(candidate, candidate, update, value=-1.0, out=after)
            else:
                held = states[before : before + count]
                product = held @ transposed
                gate[:, : 2 * size].add_(product[:, : 2 * size]).sigmoid_()
                torch.add(product[:, 2 * size :], inner, out=within)
                candidate.addcmul_(reset, within).tanh_()
                torch.lerp(candidate, held, update, out=after)
            before, start = start, start + count
        ctx.save_for_backward(states, gates, inside, weight, prefixes.elements)
        ctx.counts, ctx.elements = prefixes.counts, len(projected)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, gates, inside, weight, elements = ctx.saved_tensors
        size, counts = weight.shape[1], ctx.counts
        reset, update, candidate = gates.chunk(3, -1)
        inputs = torch.empty_like(gates)
        of_reset, of_update, of_candidate = inputs.chunk(3, -1)
        of_weight, of_inner = torch.zeros_like(weight), weight.new_zeros(size)
        carried: Tensor | None = None
        end = len(states)
        for step in reversed(range(len(counts))):
            here = slice(end - counts[step], end)
            hidden = grad[here].clone()
            if carried is not None:
                hidden[: len(carried)] += carried
            r, z, n = reset[here], update[here], candidate[here]
            previous = here.start - counts[step - 1] if step else 0
            held = states[previous : previous + counts[step]] if step else None
            keep = 1.0 - z
            torch.mul(hidden * keep, torch.addcmul(torch.ones_like(n), n, n, value=-1.0), out=of_candidate[here])
            change = n if held is None else n - held  # minus what the update gate keeps
            torch.mul(hidden * change, z * keep, out=of_update[here]).neg_()
            torch.mul(of_candidate[here] * inside[here], r * (1.0 - r), out=of_reset[here])
            within = of_candidate[here] * r
            of_inner += within.sum(0)
            if held is not None:
                both = inputs[here][:, : 2 * size]
                of_weight[: 2 * size].addmm_(both.T, held)
                of_weight[2 * size :].addmm_(within.T, held)
                carried = torch.addmm(hidden * z, both, weight[: 2 * size]).addmm_(within, weight[2 * size :])
            end = here.start
        projected = grad.new_zeros(ctx.elements, 3 * size).index_add_(0, elements, inputs)
        return projected, of_weight, of_inner, None
