"""Alignments: sequences of source positions, one for each target step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels.structured import monotonic_marginals
from saccade.structures.backend import FORBIDDEN, Backend, Potentials
from saccade.structures.base import Structure
from saccade.structures.semiring import Plus, cumulative, log_plus


def ahead(positions: Tensor, width: int) -> Tensor:
    """(..., S, W): the entries m = 0..W - 1 positions after each of (..., S), zero past the last."""
    return F.pad(positions, (0, width)).unfold(-1, width, 1)[..., : positions.shape[-1], :]


class Alignments(Structure):
    r"""A source position for each of T steps, chosen independently.

    .. math:: \langle \theta, z \rangle = \sum_t \theta_t(a_t)

    Shapes:
        potentials: one tensor (*batch, T, S).

    Args:
        steps: bool (*batch, T), True for valid steps; None for all of them.
    """

    event_dims = 2

    def __init__(self, steps: Tensor | None = None) -> None:
        self.steps = steps

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        *batch, length, sources = potentials[0].shape
        if not sources:  # no alignment exists unless there are no steps
            nothing = potentials[0].new_zeros(batch)
            some = torch.full_like(nothing, length, dtype=torch.bool) if self.steps is None else self.steps.any(-1)
            return torch.where(some, FORBIDDEN, nothing)
        state = self._start(potentials[0])
        for t in range(length):
            after = self._step(state, potentials, t, plus)
            state = after if self.steps is None else torch.where(self.steps[..., t, None], after, state)
        return self._end(state, plus)

    def _start(self, unary: Tensor) -> Tensor:
        """(*batch, S): the weight of each source position before the first step: all on the first."""
        first = torch.arange(unary.shape[-1], device=unary.device) == 0
        return torch.where(first, 0.0, FORBIDDEN).to(unary).expand(*unary.shape[:-2], unary.shape[-1])

    def _step(self, state: Tensor, potentials: Potentials, t: int, plus: Plus) -> Tensor:
        return potentials[0][..., t, :] + plus(state, -1).unsqueeze(-1)

    def _end(self, state: Tensor, plus: Plus) -> Tensor:
        return plus(state, -1)


class MonotonicAlignments(Alignments):
    r"""The same, but never moving back: a_{t-1} <= a_t.

    Args:
        last: (*batch,), the required source position of the last step; None for any.
    """

    def __init__(self, steps: Tensor | None = None, last: Tensor | None = None) -> None:
        super().__init__(steps)
        self.last = last

    def backend(self) -> MonotonicBackend:
        return MonotonicBackend(self)

    def _step(self, state: Tensor, potentials: Potentials, t: int, plus: Plus) -> Tensor:
        return potentials[0][..., t, :] + cumulative(state, plus)

    def _end(self, state: Tensor, plus: Plus) -> Tensor:
        if self.last is None:
            return super()._end(state, plus)
        return state.gather(-1, self.last.expand(state.shape[:-1]).unsqueeze(-1)).squeeze(-1)


class MonotonicBackend(Backend):
    """Monotonic alignments by a native kernel, on the CPU."""

    native = True

    def __init__(self, alignments: MonotonicAlignments) -> None:
        super().__init__(type(alignments).__name__, alignments.log_partition)
        self.steps, self.last = alignments.steps, alignments.last

    def kernel(self, potentials: Potentials) -> tuple[Tensor, Potentials] | None:
        unary = potentials[0]
        done = monotonic_marginals(unary, self.steps, self.last) if unary.shape[-1] else None
        return None if done is None else (done[0], done[1:])


class SteppedAlignments(Alignments):
    r"""The same, but step t moves from k by m = 0..W - 1 positions, and each move has a weight.

    .. math:: \langle \theta, z \rangle = \sum_t \theta_t(a_t) + \mu_t(a_{t-1}, a_t - a_{t-1})

    Shapes:
        potentials: (*batch, T, S), and moves (*batch, T, S, W).
    """

    def _step(self, state: Tensor, potentials: Potentials, t: int, plus: Plus) -> Tensor:
        unary, moves = potentials
        leaving = state.unsqueeze(-1) + moves[..., t, :, :]
        size = unary.shape[-1]
        arriving = [
            F.pad(leaving[..., : max(size - m, 0), m], (min(m, size), 0), value=FORBIDDEN)
            for m in range(moves.shape[-1])
        ]
        return unary[..., t, :] + plus(torch.stack(arriving, dim=-1), -1)

    def moves(self, unary: Tensor, width: int) -> Tensor:
        """Zeros and ones (*batch, T, S, W) for the moves between the positions unary (*batch, T, S), one per step.

        Moves back, or forward by W or more, have no part, so alignments that contain them are rejected.
        """
        before = self._start(unary).exp()
        tables = []
        for t in range(unary.shape[-2]):
            here = unary[..., t, :]
            tables.append(before.unsqueeze(-1) * ahead(here, width))
            before = here if self.steps is None else torch.where(self.steps[..., t, None], here, before)
        if not tables:
            return unary.new_zeros(*unary.shape, width)
        return torch.stack(tables, dim=-3)
