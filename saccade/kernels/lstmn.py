"""All steps of a long short-term memory network with the additive score and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from saccade.kernels import additive


def lstmn_sequence_reference(
    queries: Float[Tensor, "t b a"],
    gates: Float[Tensor, "t b 4h"],
    read_weight: Float[Tensor, "a h"],
    key_weight: Float[Tensor, "a h"],
    vector: Float[Tensor, " a"],
    cell_weight: Float[Tensor, "4h h"],
    window: int | None = None,
    past: tuple[Float[Tensor, "b p 2h"], Float[Tensor, "b h"]] | None = None,
) -> Float[Tensor, "b t 2h"]:
    """h and c after each step, one step at a time, with the tapes concatenated at each.

    Args:
        queries, gates: what the inputs add to the hidden layer of the score and to the gates i, f, g, o.
        read_weight, key_weight, vector: of the score v . tanh(queries_t + W_r h~_{t-1} + W_k h_i).
        cell_weight: from h~_t to the gates.
        window: how many of the latest states a step reads.
        past: h and c of earlier steps, and the last h~, which get no gradient; nothing by default.
    """
    size = cell_weight.shape[1]
    before, last = no_past(queries, size) if past is None else past
    hidden, cells = before.detach().chunk(2, -1)
    read = torch.cat([last, last], dim=-1).detach()
    for query, gate in zip(queries, gates, strict=True):
        query = query + read[:, :size] @ read_weight.T
        start = 0 if window is None else max(0, hidden.shape[1] - window)
        scores = (query.unsqueeze(1) + hidden[:, start:] @ key_weight.T).tanh() @ vector
        tapes = torch.cat([hidden, cells], dim=-1)[:, start:]
        read = (scores.softmax(-1).unsqueeze(1) @ tapes).squeeze(1)
        enter, forget, candidate, leave = (gate + read[:, :size] @ cell_weight.T).chunk(4, -1)
        cell = forget.sigmoid() * read[:, size:] + enter.sigmoid() * candidate.tanh()
        hidden = torch.cat([hidden, (leave.sigmoid() * cell.tanh()).unsqueeze(1)], dim=1)
        cells = torch.cat([cells, cell.unsqueeze(1)], dim=1)
    return torch.cat([hidden, cells], dim=-1)[:, before.shape[1] :]


def no_past(like: Float[Tensor, "t b a"], size: int) -> tuple[Float[Tensor, "b 0 2h"], Float[Tensor, "b h"]]:
    """What is known before the first step."""
    return like.new_zeros(like.shape[1], 0, 2 * size), like.new_zeros(like.shape[1], size)


def lstmn_sequence(
    queries: Float[Tensor, "t b a"],
    gates: Float[Tensor, "t b 4h"],
    read_weight: Float[Tensor, "a h"],
    key_weight: Float[Tensor, "a h"],
    vector: Float[Tensor, " a"],
    cell_weight: Float[Tensor, "4h h"],
    window: int | None = None,
    past: tuple[Float[Tensor, "b p 2h"], Float[Tensor, "b h"]] | None = None,
) -> tuple[Float[Tensor, "b t 2h"], TapeReads]:
    """`lstmn_sequence_reference` over tapes allocated ahead, with weight gradients computed after the last step.

    Also returns what the steps read, without gradients.
    """
    looked = TapeReads(window)
    with torch.autocast(queries.device.type, enabled=False):
        tensors = [each.to(cell_weight.dtype) for each in (queries, gates, read_weight, key_weight, vector)]
        known = no_past(queries, cell_weight.shape[1]) if past is None else past
        earlier = [each.detach().to(cell_weight.dtype) for each in known]
        apply: Callable[..., Tensor] = _LSTMN.apply
        learns = torch.is_grad_enabled() and any(each.requires_grad for each in (*tensors, cell_weight))
        return apply(*tensors, cell_weight, learns, looked, *earlier), looked


class TapeReads:
    """What the steps of `lstmn_sequence` read, and with which weights, which are computed when they are asked for.

    All weights of a text without a window take memory that grows with the square of its length.
    """

    last: Float[Tensor, "b h"]
    """The h that the last step read; zeros if there was nothing to read."""

    def __init__(self, window: int | None) -> None:
        self.window = window

    def note(
        self,
        queries: Float[Tensor, "t b a"],
        keys: Float[Tensor, "b p+t a"],
        vector: Float[Tensor, " a"],
        last: Float[Tensor, "b h"],
    ) -> None:
        """Keeps the queries with what they got from the reads before, and the keys of all states."""
        self._queries, self._keys, self.last = queries, keys, last
        self._vector = vector.clone()  # an optimiser may change it before somebody looks

    def weights(self) -> Float[Tensor, "b t p+t"]:
        """Those of each step; without a past, the first one has only zeros."""
        steps, batch, past = len(self._queries), self._queries.shape[1], self._keys.shape[1] - len(self._queries)
        whole = self._queries.new_zeros(batch, steps, past + steps)
        for t in range(not past, steps):
            end, start = past + t, _start(past + t, self.window)
            whole[:, t, start:end] = _weights(self._queries[t], self._keys[:, start:end], self._vector).squeeze(1)
        return whole


def _weights(
    query: Float[Tensor, "b a"], keys: Float[Tensor, "b read a"], vector: Float[Tensor, " a"]
) -> Float[Tensor, "b 1 read"]:
    return additive.forward(query.unsqueeze(1), keys, vector).softmax(-1)


class _LSTMN(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        gates: Tensor,
        read_weight: Tensor,
        key_weight: Tensor,
        vector: Tensor,
        cell_weight: Tensor,
        learns: bool,
        looked: TapeReads,
        before: Tensor,
        last: Tensor,
    ) -> Tensor:
        steps, batch, size, past = len(queries), queries.shape[1], cell_weight.shape[1], before.shape[1]
        tapes = torch.cat([before, queries.new_empty(batch, steps, 2 * size)], dim=1)
        keys = torch.cat([before[..., :size] @ key_weight.T, queries.new_empty(batch, steps, len(vector))], dim=1)
        queries, gates = queries.clone(), gates.clone()
        reads, squashed = queries.new_zeros(steps, batch, 2 * size), queries.new_empty(steps, batch, size)
        kept: list[Tensor] = []
        for t in range(steps):
            end = past + t
            start = _start(end, looked.window)
            if end:
                read_before = reads[t - 1, :, :size] if t else last
                torch.addmm(queries[t], read_before, read_weight.T, out=queries[t])
                weights = _weights(queries[t], keys[:, start:end], vector)
                if learns:
                    kept.append(weights)
                torch.bmm(weights, tapes[:, start:end], out=reads[t].unsqueeze(1))
            gate, read = gates[t], reads[t]
            gate.addmm_(read[:, :size], cell_weight.T)
            enter, forget, candidate, leave = gate.chunk(4, -1)
            gate[:, : 2 * size].sigmoid_()
            candidate.tanh_()
            leave.sigmoid_()
            cell = torch.mul(forget, read[:, size:], out=tapes[:, end, size:]).addcmul_(enter, candidate)
            torch.mul(leave, torch.tanh(cell, out=squashed[t]), out=tapes[:, end, :size])
            torch.mm(tapes[:, end, :size], key_weight.T, out=keys[:, end])
        looked.note(queries, keys, vector.detach(), reads[-1, :, :size].clone())
        ctx.window = looked.window
        ctx.weights = kept
        ctx.save_for_backward(
            queries, gates, reads, squashed, keys, tapes, read_weight, key_weight, vector, cell_weight, last
        )
        return tapes[:, past:] if past else tapes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        queries, gates, reads, squashed, keys, tapes, read_weight, key_weight, vector, cell_weight, last = (
            ctx.saved_tensors
        )
        size, past = cell_weight.shape[1], tapes.shape[1] - len(queries)
        enter, forget, candidate, leave = gates.chunk(4, -1)
        # Each gate's gradient is that of c (of h for the last gate) times a factor computed for all steps at once.
        factors = torch.stack(
            [
                candidate * enter * (1 - enter),
                reads[..., size:] * forget * (1 - forget),
                enter * (1 - candidate * candidate),
                squashed * leave * (1 - leave),
            ],
            dim=-2,
        )
        through = leave * (1 - squashed * squashed)
        of_tapes, of_keys, of_vector = torch.zeros_like(tapes), torch.zeros_like(keys), torch.zeros_like(vector)
        of_tapes[:, past:] = grad
        of_queries, of_gates = torch.zeros_like(queries), torch.empty_like(factors)
        of_read = torch.zeros_like(reads[0])
        for t in reversed(range(len(queries))):
            end = past + t
            start = _start(end, ctx.window)
            hidden = torch.addmm(of_tapes[:, end, :size], of_keys[:, end], key_weight)
            cell = of_tapes[:, end, size:].addcmul_(hidden, through[t])
            torch.mul(factors[t][:, :3], cell.unsqueeze(1), out=of_gates[t][:, :3])
            torch.mul(factors[t][:, 3], hidden, out=of_gates[t][:, 3])
            if not end:
                break
            of_read[:, :size].addmm_(of_gates[t].flatten(1), cell_weight)
            torch.mul(cell, forget[t], out=of_read[:, size:])
            change, weights = of_read.unsqueeze(1), ctx.weights[t - (not past)]
            of_weights = torch.bmm(change, tapes[:, start:end].mT)
            of_scores = of_weights.sub_((of_weights * weights).sum(-1, keepdim=True)).mul_(weights)
            of_tapes[:, start:end].baddbmm_(weights.mT, change)
            of_query, of_read_keys, of_step = additive.backward(
                of_scores, queries[t].unsqueeze(1), keys[:, start:end], vector
            )
            of_keys[:, start:end] += of_read_keys
            of_queries[t] = of_query.squeeze(1)
            of_vector += of_step
            torch.mm(of_queries[t], read_weight, out=of_read[:, :size])
        of_gates = of_gates.flatten(-2)
        hidden = reads[..., :size]
        earlier = torch.cat([last.unsqueeze(0), hidden[:-1]])
        return (
            of_queries,
            of_gates,
            of_queries.flatten(0, 1).T @ earlier.flatten(0, 1),
            of_keys.flatten(0, 1).T @ tapes[..., :size].flatten(0, 1),
            of_vector,
            of_gates.flatten(0, 1).T @ hidden.flatten(0, 1),
            None,
            None,
            None,
            None,
        )


def _start(step: int, window: int | None) -> int:
    """The first state that a step reads."""
    return 0 if window is None else max(0, step - window)
