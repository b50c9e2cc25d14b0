"""Entropy bonus."""

from torch import Tensor

from saccade.distributions import Distribution
from saccade.losses.base import Reduction, full, reduce
from saccade.masks import Mask


def entropy_bonus(
    selection: Distribution, *, step_mask: Tensor | Mask | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r"""The negative entropy of the selection, which encourages exploration.

    .. math:: \ell_t = -H(\alpha_t) = \sum_i \alpha_{ti} \log \alpha_{ti}

    Shapes:
        a selection over (*batch, steps, keys), step_mask (*batch, steps), True = valid -> the mean or sum over the
        valid steps of the batch, or (*batch, steps), zero at invalid steps. A structure that spans all steps has one
        entropy, (*batch,), which counts if any step is valid.

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.1.
    """
    entropy = selection.entropy()
    if selection.joint and (isinstance(step_mask, Mask) or (step_mask is not None and step_mask.dim() > entropy.dim())):
        shape = selection.marginals.shape[:-1]
        step_mask = full(step_mask, shape, "step_mask", "(*batch, steps)", entropy.device).any(-1)
    steps = full(step_mask, entropy.shape, "step_mask", "(*batch, steps)", entropy.device)
    return reduce(-entropy, reduction, steps)
