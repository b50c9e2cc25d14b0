"""Segments of bounded length."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.structures.backend import Potentials
from saccade.structures.base import Structure
from saccade.structures.semiring import Plus, log_plus


class Segments(Structure):
    r"""Any number of segments in n positions, each of at most L, separated by at least one position.

    .. math:: P(i) = \bigoplus_{l \le L} O(i - l) + \theta_{i-l,l}, \qquad O(i) = O(i - 1) \oplus P(i - 1)

    P(i) is the weight of the first i positions with a segment that ends at the last of them, O(i) that without one.

    Shapes:
        potentials: one tensor (*batch, n, L), [i, l] for the segment of l + 1 positions starting at i. Segments that
        extend past the end are ignored.
    """

    event_dims = 2

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        without, ended = self._prefixes(potentials[0], plus)
        return plus(torch.stack([without[-1], ended[-1]], dim=-1), -1) if ended else without[-1]

    def inference(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """Computed explicitly from prefixes and suffixes of each segment."""
        (theta,) = potentials
        length, longest = theta.shape[-2:]
        total = self.log_partition(potentials)
        without, _ = self._prefixes(theta, log_plus)
        # following[i]: the positions from i on if a segment ended just before i; free[i]: if none did.
        zero = torch.zeros_like(total)
        following, free = [zero], [zero]
        for i in range(length - 1, -1, -1):
            following.insert(0, free[0])
            segments = [theta[..., i, size - 1] + following[size] for size in range(1, min(longest, length - i) + 1)]
            free.insert(0, torch.logsumexp(torch.stack([following[0], *segments], dim=-1), -1))
        rows = []
        for i in range(length):
            row = [
                without[i] + theta[..., i, size - 1] + following[i + size] - total
                for size in range(1, min(longest, length - i) + 1)
            ]
            padding = [torch.full_like(zero, -torch.inf)] * (longest - len(row))
            rows.append(torch.stack([*row, *padding], dim=-1).clamp(max=0.0).exp())
        return total, (torch.stack(rows, dim=-2) if rows else torch.zeros_like(theta),)

    @staticmethod
    def _prefixes(theta: Tensor, plus: Plus) -> tuple[list[Tensor], list[Tensor]]:
        """O(0..n) and P(1..n)."""
        length, longest = theta.shape[-2:]
        without: list[Tensor] = [theta.new_zeros(theta.shape[:-2])]
        ended: list[Tensor] = []
        for i in range(1, length + 1):
            before = [without[-1], ended[-1]] if ended else [without[-1]]
            ways = [without[i - size] + theta[..., i - size, size - 1] for size in range(1, min(longest, i) + 1)]
            ended.append(plus(torch.stack(ways, dim=-1), -1))
            without.append(plus(torch.stack(before, dim=-1), -1))
        return without, ended
