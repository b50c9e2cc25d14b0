"""Chains: sequences of states."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.kernels.structured import chain_derivative, chain_marginals
from saccade.structures.backend import FORBIDDEN, Backend, Direction, Potentials
from saccade.structures.base import Structure
from saccade.structures.semiring import Plus, log_plus


class Chains(Structure):
    r"""One of C states at each of N positions.

    .. math:: \langle \theta, z \rangle = \sum_i \theta_i(z_i) + \sum_i \theta_{i,i+1}(z_i, z_{i+1})

    Shapes:
        potentials: unary (*batch, N, C) and transitions (*batch, N - 1, C, C), from the earlier state to the later
        one; the batch and position axes of transitions may have size 1 if they are shared.

    Args:
        mask: bool (*batch, N), True for valid positions. The others are removed, and their neighbours become adjacent;
            a position i after a gap uses the transitions of (i - 1, i).
    """

    event_dims = 2

    def __init__(self, mask: Tensor | None = None) -> None:
        self.mask = mask

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        unary, transitions = potentials
        batch, length, states = unary.shape[:-2], unary.shape[-2], unary.shape[-1]
        if length == 0 or states == 0:
            return unary.new_zeros(batch)
        mask = unary.new_ones(length, dtype=torch.bool) if self.mask is None else self.mask
        started = mask.cumsum(-1) > 0
        nothing = torch.where(torch.eye(states, dtype=torch.bool, device=unary.device), 0.0, FORBIDDEN).to(unary)
        # A missing position keeps the state; before the first valid position, the state is 0 at no cost.
        state = nothing[0].expand(*batch, states)
        for i in range(length):
            present = mask[..., i, None, None]
            if i == 0:
                into = torch.zeros_like(nothing)
            else:
                own = transitions[..., min(i, transitions.shape[-3]) - 1, :, :]
                into = torch.where(started[..., i - 1, None, None], own, torch.zeros_like(own))
            into = torch.where(present, into, nothing)
            here = torch.where(present.squeeze(-1), unary[..., i, :], 0.0)
            state = here + plus(state.unsqueeze(-1) + into, -2)
        return plus(state, -1)

    def backend(self) -> ChainBackend:
        return ChainBackend(self)

    def parts(self, states: Tensor, num_states: int) -> Potentials:
        """Zeros and ones of the sequence states (*batch, N): unary parts, and transitions with N - 1 positions."""
        length = states.shape[-1]
        mask = torch.ones_like(states, dtype=torch.bool) if self.mask is None else self.mask.expand(states.shape)
        unary = torch.nn.functional.one_hot(states, num_states).to(torch.float64) * mask.unsqueeze(-1)
        carried = unary[..., :1, :]
        before = []
        for i in range(1, length):  # the state before i, past the positions that are missing
            before.append(carried)
            carried = torch.where(mask[..., i : i + 1, None], unary[..., i : i + 1, :], carried)
        earlier = torch.cat(before, dim=-2) if before else unary[..., :0, :]
        return unary, earlier.unsqueeze(-1) * unary[..., 1:, :].unsqueeze(-2)


class ChainBackend(Backend):
    """Chains by native kernels, on the CPU."""

    native = exportable = True

    def __init__(self, chains: Chains) -> None:
        super().__init__(type(chains).__name__, chains.log_partition)
        self.mask = chains.mask

    def kernel(self, potentials: Potentials) -> tuple[Tensor, Potentials] | None:
        unary, transitions = potentials
        done = chain_marginals(unary, transitions, self.mask)
        return None if done is None else (done[0], done[1:])

    def kernel_derivative(
        self, potentials: Potentials, marginals: Potentials, direction: Direction
    ) -> Potentials | None:
        unary, transitions = potentials
        along, turn = direction
        return chain_derivative(unary, transitions, self.mask, along, turn)

    def operator(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        total, *marginals = chain_inference(*potentials, self.mask)
        return total, tuple(marginals)


@torch.library.custom_op("saccade::chain_inference", mutates_args=())
def chain_inference(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """`Chains.inference`, for compiled code."""
    total, marginals = Chains(mask).backend().evaluate((unary, transitions))
    return total, *marginals  # type: ignore[return-value]


@torch.library.custom_op("saccade::chain_inference_backward", mutates_args=())
def chain_inference_backward(
    unary: Tensor,
    transitions: Tensor,
    mask: Tensor | None,
    states: Tensor,
    edges: Tensor,
    grad_total: Tensor,
    grad_states: Tensor,
    grad_edges: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradient of `chain_inference`."""
    grads = (grad_total, grad_states, grad_edges)
    return Chains(mask).backend().chain_rule((unary, transitions), (states, edges), grads)  # type: ignore[return-value]


@chain_inference.register_fake
def _(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    total = unary.new_empty(unary.shape[:-2], dtype=torch.float64)
    return total, unary.new_empty(unary.shape), transitions.new_empty(transitions.shape)


@chain_inference_backward.register_fake
def _(unary: Tensor, transitions: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return unary.new_empty(unary.shape), unary.new_empty(transitions.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    unary, transitions, mask = inputs
    ctx.save_for_backward(unary, transitions, *(() if mask is None else (mask,)), *output[1:])
    ctx.masked = mask is not None


def _derive(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    unary, transitions, *mask, states, edges = ctx.saved_tensors
    given = mask[0] if ctx.masked else None
    return *chain_inference_backward(unary, transitions, given, states, edges, *grads), None


chain_inference.register_autograd(_derive, setup_context=_save)
