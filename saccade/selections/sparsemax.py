"""Sparsemax selection."""

from typing import Any

import torch
from torch import Tensor

from saccade.distributions import Categorical, Distribution
from saccade.kernels import native
from saccade.kernels.finite import NotFiniteError
from saccade.kernels.sparse import normalise
from saccade.selections.base import Selection, check_finite, full_mask, selections


def sparsemax(scores: Tensor, dim: int = -1, mask: Tensor | None = None) -> Tensor:
    """The point of the simplex nearest to the scores along `dim`; see `Sparsemax`.

    Entries where `mask` (bool, broadcastable to the scores) is False get zero, and fully masked rows are zero.
    """
    return normalise_along(dim, scores, mask, "sparsemax")


def normalise_along(dim: int, scores: Tensor, mask: Tensor | None, mapping: str) -> Tensor:
    """A sparse mapping along any axis, with an error that locates scores that are not finite."""
    keep = None if mask is None else full_mask(scores, mask)
    rows, kept = scores, keep
    if dim not in (-1, scores.dim() - 1):
        rows, kept = scores.movedim(dim, -1), None if keep is None else keep.movedim(dim, -1)
    if torch.compiler.is_compiling():
        weights = normalise(rows, kept, mapping)
    else:
        if not native.usable(scores):  # the native kernel checks for itself
            check_finite(scores, full_mask(scores, mask))
        try:
            weights = normalise(rows, kept, mapping)
        except NotFiniteError:
            check_finite(scores, full_mask(scores, mask))
            raise
    return weights if rows is scores else weights.movedim(-1, dim)


@selections.register("sparsemax")
class Sparsemax(Selection):
    r"""Projects the scores onto the simplex: positions far below the best get exactly zero.

    .. math:: p = \arg\min_{p \in \Delta} \lVert p - s \rVert^2, \qquad p_j = \max(s_j - \tau, 0)

    where the threshold tau makes the weights sum to one.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Martins and Astudillo (2016), arXiv:1602.02068; scores are z there.
    """

    segment_mapping = "sparsemax"

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Categorical(sparsemax(scores, mask=mask), training=self.training)
