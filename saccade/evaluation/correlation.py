"""Rank correlation."""

from __future__ import annotations

import torch
from torch import Tensor


def kendall(first: Tensor, second: Tensor) -> Tensor:
    r"""Kendall's tau-b of two rankings along the last axis; ties count for neither side.

    .. math:: \tau = \frac{\sum_{i<j} \operatorname{sgn}(a_i - a_j) \operatorname{sgn}(b_i - b_j)}
        {\sqrt{\#\{a_i \ne a_j\} \, \#\{b_i \ne b_j\}}}

    Shapes:
        (*batch, n), (*batch, n) -> (*batch); NaN where one of them is constant.
    """
    one, other = ((values.unsqueeze(-1) - values.unsqueeze(-2)).sign() for values in (first, second))
    pairs = (one.abs().sum(dim=(-2, -1)) * other.abs().sum(dim=(-2, -1))).sqrt()
    return (one * other).sum(dim=(-2, -1)) / pairs


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """Spearman's rho along the last axis: the correlation of the ranks, where ties share the mean rank.

    Shapes:
        (*batch, n), (*batch, n) -> (*batch); NaN where one of them is constant.
    """
    one, other = (ranks - ranks.mean(dim=-1, keepdim=True) for ranks in (_ranks(first), _ranks(second)))
    return (one * other).sum(dim=-1) / (one.square().sum(dim=-1) * other.square().sum(dim=-1)).sqrt()


def _ranks(values: Tensor) -> Tensor:
    given = values.detach().contiguous()
    order = given.sort(dim=-1).values
    smaller, not_larger = (torch.searchsorted(order, given, right=right) for right in (False, True))
    return (smaller + not_larger).double() / 2
