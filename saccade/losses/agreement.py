"""Agreement of two directions."""

import torch
from torch import Tensor

from saccade.losses.base import Reduction, reduce, valid_weights
from saccade.masks import Mask


def agreement_bonus(
    target_to_source: Tensor,
    source_to_target: Tensor,
    *,
    target_mask: Tensor | Mask | None = None,
    source_mask: Tensor | Mask | None = None,
    normalize: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The negative agreement of the attention of two translation directions.

    .. math:: \ell = -\frac{\operatorname{tr}(A^{s \leftarrow t} A^{s \rightarrow t})}{\min(T, S)}
        = -\frac{\sum_{ij} A^{s \leftarrow t}_{ij} A^{s \rightarrow t}_{ji}}{\min(T, S)}

    If all rows sum to one, the trace is at most the smaller length, so the normalised loss is between -1 (both
    directions link the same words, one to one) and 0. Without `normalize` it is the paper's trace.

    Shapes:
        target_to_source (*batch, targets, sources): the attention of the model that generates the target;
        source_to_target (*batch, sources, targets): that of the model that generates the source; target_mask
        (*batch, targets), source_mask (*batch, sources), True = valid -> the mean or sum over the sentences of the
        batch, or (*batch,).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, bilingual symmetry.
    """
    mirrored = source_to_target.transpose(-1, -2)
    if mirrored.shape != target_to_source.shape:
        raise ValueError(
            f"source_to_target must be (*batch, sources, targets), the transpose of target_to_source "
            f"{tuple(target_to_source.shape)}, got {tuple(source_to_target.shape)}."
        )
    weights, targets, sources = valid_weights(target_to_source, target_mask, source_mask)
    trace = (weights * mirrored).sum((-1, -2))
    if normalize:
        trace = trace / torch.minimum(targets.sum(-1), sources.sum(-1)).clamp_min(1)
    return reduce(-trace, reduction)
