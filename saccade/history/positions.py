"""Positions of the step and of each key."""

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.history.base import HistoryFeature, attendable, features


class PositionState(NamedTuple):
    """step (*batch, 1, 1), whole numbers; source (*batch, keys, 2): logs of each key's position and of the length."""

    step: Tensor
    source: Tensor


@features.register("positions")
class PositionFeature(HistoryFeature):
    r"""Logarithms of the step, of each key's position and of the number of keys.

    .. math:: \psi_{ij} = [\log(1 + i);\, \log(1 + j);\, \log(1 + S)]

    i and j count from 0. Only attendable keys count, for S and for j.

    Shapes:
        -> features (*batch, keys, 3).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, section 3.2, "position bias"; the paper's j is our step i, its i our
        key j, its I our S.
    """

    feature_dim: int = 3

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> PositionState:
        may = attendable(prepared, mask)
        position = (may.cumsum(-1) - 1).clamp(min=0)
        length = may.sum(-1, keepdim=True).expand_as(position)
        source = _log(torch.stack([position, length], dim=-1), prepared.dtype)
        return PositionState(torch.zeros(*may.shape[:-1], 1, 1, dtype=torch.long, device=may.device), source)

    def features(self, state: PositionState, query: Tensor, prepared: Tensor) -> Tensor:
        step = _log(state.step, state.source.dtype)
        return torch.cat([step.expand(*state.source.shape[:-1], 1), state.source], dim=-1)

    def advance(self, state: PositionState, weights: Tensor, query: Tensor, prepared: Tensor) -> PositionState:
        return state._replace(step=state.step + 1)


def _log(count: Tensor, dtype: torch.dtype) -> Tensor:
    # Half precision rounds integers above 256: round the logarithm, not the count.
    return count.to(torch.promote_types(dtype, torch.float32)).log1p().to(dtype)
