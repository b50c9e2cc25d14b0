"""Sets of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from saccade.distributions.base import check_indicator
from saccade.distributions.structured import Structured
from saccade.masks import fitted
from saccade.structures.backend import FORBIDDEN, Potentials
from saccade.structures.segments import Segments


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentSet(Structured):
    """Any number of non-adjacent segments of bounded length; z is one at the keys of a segment.

    Created with `SegmentSet.of`.

    Args:
        order: (*batch, queries, keys), with unmasked keys first.
        mask: bool (*batch, queries, keys).
    """

    order: Tensor
    mask: Tensor

    @classmethod
    def of(cls, scores: Tensor, durations: Tensor, mask: Tensor, *, training: bool = False) -> SegmentSet:
        """A segment of l keys has the weight sum of their scores (*batch, queries, keys) plus durations[l - 1]."""
        mask = fitted(mask, scores.shape, "the scores'")
        order = torch.argsort(~mask, dim=-1, stable=True)
        keys, longest = scores.shape[-1], durations.shape[-1]
        own = torch.where(mask, scores, 0.0).to(torch.float64).gather(-1, order)
        sums = torch.nn.functional.pad(own.cumsum(-1), (1, longest))
        count = mask.sum(-1, keepdim=True)
        tables = []
        for size in range(1, longest + 1):
            theta = sums[..., size : size + keys] - sums[..., :keys] + durations[size - 1].to(torch.float64)
            inside = torch.arange(keys, device=scores.device) + size <= count
            tables.append(torch.where(inside, theta, FORBIDDEN))
        return cls(
            Segments(),
            (torch.stack(tables, dim=-1),),
            dtype=scores.dtype,
            training=training,
            order=order,
            mask=mask,
        )

    def indicator(self, parts: Potentials) -> Tensor:
        segments = parts[0]  # [i, l]
        keys, longest = segments.shape[-2:]
        covered = [
            torch.nn.functional.pad(segments[..., size - 1 :].sum(-1), (size - 1, 0))[..., :keys]
            for size in range(1, longest + 1)  # segments that started `size - 1` keys ago and have not ended
        ]
        packed = torch.stack(covered).sum(0).clamp(max=1.0)  # each segment's marginal is rounded separately
        order = self.order.expand(packed.shape)
        return (torch.zeros_like(packed).scatter(-1, order, packed) * self.mask).to(self.dtype)

    def parts(self, z: Tensor) -> Potentials:
        packed = (z == 1).to(torch.float64).gather(-1, self.order.expand(z.shape))
        longest = self.potentials[0].shape[-1]
        keys = packed.shape[-1]
        begins = packed * (1 - torch.nn.functional.pad(packed, (1, 0))[..., :-1])
        on = torch.nn.functional.pad(packed, (0, longest + 1))
        run = torch.ones_like(packed)
        tables = []
        for size in range(1, longest + 1):
            run = run * on[..., size - 1 : size - 1 + keys]
            tables.append(begins * run * (1 - on[..., size : size + keys]))
        return (torch.stack(tables, dim=-1),)

    def log_prob(self, z: Tensor) -> Tensor:
        check_indicator(z, self.mask.shape[-1])
        log_prob = super().log_prob(z)
        # Runs that are too long have no parts, so reconstructing z from its parts does not give z.
        whole = self.indicator(self.parts(z)) == z
        return torch.where(whole.all(-1), log_prob, -torch.inf)

    def _choices(self) -> dict[str, object]:
        return {"mask": self.mask}

    def joined(self, parts: Sequence[Self]) -> Self:
        theta = torch.cat([part.potentials[0] for part in parts], dim=-3)
        order = torch.cat([part.order for part in parts], dim=-2)
        return replace(self, potentials=(theta,), order=order, mask=torch.cat([part.mask for part in parts], dim=-2))
