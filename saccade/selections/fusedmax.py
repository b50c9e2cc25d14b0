"""Fusedmax selection."""

import math
from typing import Any

import torch
from torch import Tensor

from saccade.distributions import Categorical, Distribution
from saccade.kernels.total_variation import fuse
from saccade.selections.base import Selection, check_finite, full_mask, selections
from saccade.selections.sparsemax import sparsemax


def fusedmax(scores: Tensor, dim: int = -1, mask: Tensor | None = None, *, strength: float = 0.1) -> Tensor:
    """Sparsemax along `dim` after fusing neighbours; see `Fusedmax`.

    Entries where `mask` (bool, broadcastable to the scores) is False get zero and are not neighbours of any other;
    fully masked rows are zero.
    """
    if not 0 <= strength < math.inf:
        raise ValueError(f"strength must be 0 or more, got {strength}.")
    if strength == 0:
        return sparsemax(scores, dim=dim, mask=mask)
    keep = None if mask is None else full_mask(scores, mask)
    check_finite(scores, full_mask(scores, mask))
    rows = scores.to(torch.promote_types(scores.dtype, torch.float32)).movedim(dim, -1)
    kept = None if keep is None else keep.movedim(dim, -1)
    fused = fuse(rows, kept, strength).movedim(-1, dim)
    return sparsemax(fused, dim=dim, mask=keep).to(scores.dtype)


@selections.register("fusedmax")
class Fusedmax(Selection):
    r"""Sparsemax that tends to give neighbours the same weight, so that whole segments are selected.

    .. math:: p = \mathrm{sparsemax}(\arg\min_x \tfrac12 \lVert x - s \rVert^2
        + \lambda \textstyle\sum_j |x_{j+1} - x_j|)

    Neighbours are neighbours among the attendable keys.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Niculae and Blondel (2017), arXiv:1705.07704; `strength` is lambda there.
    """

    def __init__(self, *, strength: float = 0.1) -> None:
        super().__init__()
        if not 0 <= strength < math.inf:
            raise ValueError(f"strength must be 0 or more, got {strength}.")
        self.strength = strength

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Categorical(fusedmax(scores, mask=mask, strength=self.strength), training=self.training)
