"""Coverage loss."""

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.losses.base import Reduction, reduce, valid_weights
from saccade.masks import Mask


def coverage_loss(
    weights: Tensor,
    *,
    step_mask: Tensor | Mask | None = None,
    key_mask: Tensor | Mask | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Penalises attention to positions that earlier steps have already attended to.

    .. math:: \ell_t = \sum_i \min(a_{ti}, \mathrm{cov}_{ti}), \qquad \mathrm{cov}_{ti} = \sum_{t' < t} a_{t'i}

    Shapes:
        weights (*batch, steps, keys), step_mask (*batch, steps), key_mask (*batch, keys), True = valid -> the mean or
        sum over the valid steps of the batch, or (*batch, steps), zero at invalid steps, which add no coverage.

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 12.
    """
    weights, steps, _ = valid_weights(weights, step_mask, key_mask)
    # Shifted, not `cumsum - weights`: rounding must not make coverage negative.
    coverage = F.pad(weights, (0, 0, 1, 0))[..., :-1, :].cumsum(-2)
    return reduce(torch.minimum(weights, coverage).sum(-1), reduction, steps)
