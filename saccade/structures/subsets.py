"""Subsets of a given size."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.structures.backend import FORBIDDEN, Potentials
from saccade.structures.base import Structure
from saccade.structures.semiring import Plus, log_plus


class Subsets(Structure):
    r"""Subsets of exactly k of n positions.

    .. math:: E_j(c) = E_{j-1}(c) \oplus (E_{j-1}(c - 1) + \theta_j), \qquad \log Z = E_n(k)

    Shapes:
        potentials: one tensor (*batch, n).

    Args:
        sizes: whole numbers (*batch,), the value of k for each batch row.
        largest: an upper bound on k.
    """

    def __init__(self, sizes: Tensor, largest: int) -> None:
        self.sizes = sizes
        self.largest = largest

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        (theta,) = potentials
        table = self._none(theta)
        for j in range(theta.shape[-1]):
            table = _take(table, theta[..., j], plus)
        return self._read(table, self.sizes)

    def inference(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """Computed explicitly from the subsets before and after each position."""
        (theta,) = potentials
        length = theta.shape[-1]
        before, after = [self._none(theta)], [self._none(theta)]
        for j in range(length):
            before.append(_take(before[-1], theta[..., j], log_plus))
            after.append(_take(after[-1], theta[..., length - 1 - j], log_plus))
        total = self._read(before[-1], self.sizes)
        if not length:
            return total, (torch.zeros_like(theta),)
        # With j picked: c before it and k - 1 - c after it, for all c.
        missing = (self.sizes.unsqueeze(-1) - 1 - torch.arange(self.largest + 1, device=theta.device)).expand(
            *theta.shape[:-1], self.largest + 1
        )
        others = []
        for j in range(length):
            rest = after[length - 1 - j].gather(-1, missing.clamp(min=0))
            ways = torch.where(missing >= 0, before[j] + rest, FORBIDDEN)
            others.append(torch.logsumexp(ways, -1))
        marginals = (theta + torch.stack(others, dim=-1) - total.unsqueeze(-1)).clamp(max=0.0).exp()
        return total, (marginals,)

    def _none(self, theta: Tensor) -> Tensor:
        """(*batch, largest + 1): without positions there is only the empty subset."""
        first = torch.arange(self.largest + 1, device=theta.device) == 0
        return torch.where(first, 0.0, FORBIDDEN).to(theta).expand(*theta.shape[:-1], self.largest + 1)

    def _read(self, table: Tensor, sizes: Tensor) -> Tensor:
        return table.gather(-1, sizes.expand(table.shape[:-1]).unsqueeze(-1)).squeeze(-1)


def _take(table: Tensor, theta: Tensor, plus: Plus) -> Tensor:
    """The table after one more position."""
    taken = F.pad(table[..., :-1] + theta.unsqueeze(-1), (1, 0), value=FORBIDDEN)
    return plus(torch.stack([table, taken], dim=-1), -1)
