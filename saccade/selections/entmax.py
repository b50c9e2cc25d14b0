"""Alpha-entmax selection."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.distributions import Categorical, Distribution
from saccade.kernels.entmax import entmax_weights
from saccade.kernels.modes import visible
from saccade.selections.base import Selection, check_finite, full_mask, selections
from saccade.selections.entmax15 import entmax15
from saccade.selections.softmax import softmax
from saccade.selections.sparsemax import sparsemax


def entmax(scores: Tensor, dim: int = -1, mask: Tensor | None = None, *, alpha: float | Tensor = 1.5) -> Tensor:
    """Alpha-entmax along `dim`; see `Entmax`.

    Args:
        scores: of any shape.
        dim: the axis that sums to one.
        mask: bool, broadcastable to the scores; entries where it is False get zero, and fully masked rows are zero.
        alpha: 1 or more; a number, or a tensor that broadcasts to the scores and has size 1 along `dim`.
    """
    if not isinstance(alpha, Tensor):
        if not 1 <= alpha < math.inf:
            raise ValueError(f"alpha must be 1 or more, got {alpha}: 1 is softmax, 2 sparsemax.")
        special = {1.0: softmax, 1.5: entmax15, 2.0: sparsemax}.get(float(alpha))
        if special is not None:
            return special(scores, dim=dim, mask=mask)
        alpha = torch.tensor(float(alpha), dtype=scores.dtype, device=scores.device)
    keep = full_mask(scores, mask)
    check_finite(scores, keep)
    dtype = torch.promote_types(scores.dtype, torch.float32)
    rows = scores.to(dtype).movedim(dim, -1)
    weights = entmax_weights(rows, _one_per_row(alpha.to(dtype), scores, dim), keep.movedim(dim, -1))
    return weights.movedim(-1, dim).to(scores.dtype)


def _one_per_row(alpha: Tensor, scores: Tensor, dim: int) -> Tensor:
    """Alpha expanded to the shape of the scores, with `dim` moved to the end and of size 1."""
    if visible(alpha) and bool((alpha < 1).any()):
        raise ValueError(f"alpha must be 1 or more, got {alpha.min().item()}: 1 is softmax, 2 sparsemax.")
    shape = list(scores.shape)
    shape[dim] = 1
    try:
        return alpha.expand(shape).movedim(dim, -1)
    except RuntimeError:
        raise ValueError(
            f"alpha of shape {tuple(alpha.shape)} does not broadcast to {tuple(shape)}, the shape of the scores "
            f"with size 1 along dim={dim}."
        ) from None


@selections.register("entmax")
class Entmax(Selection):
    r"""Weights of adjustable or learned sparsity: softmax at alpha = 1, sparsemax at alpha = 2.

    .. math:: p_j = \max((\alpha - 1) s_j - \tau, 0)^{1 / (\alpha - 1)}

    where the threshold tau makes the weights sum to one. A learned alpha is 1 + softplus(raw_alpha), so it stays
    above 1.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Peters et al. (2019), arXiv:1905.05702; learned, one for each head: Correia et al. (2019), arXiv:1909.00015.

    Args:
        alpha: its (initial) value, above 1, or 1 or more if it is not learned.
        learn_alpha: whether alpha is a parameter.
        num_heads: learns one alpha per head, for scores (*batch, heads, queries, keys).
    """

    def __init__(self, *, alpha: float = 1.5, learn_alpha: bool = True, num_heads: int | None = None) -> None:
        super().__init__()
        if not 1 <= alpha < math.inf or (learn_alpha and alpha == 1):
            raise ValueError(f"alpha must be above 1 (1 is allowed if it is not learned), got {alpha}.")
        if num_heads is not None and not learn_alpha:
            raise ValueError("num_heads needs a learned alpha: omit it, or set learn_alpha=True.")
        self.fixed_alpha = None if learn_alpha else alpha
        if learn_alpha:
            start = alpha - 1 + math.log(-math.expm1(1 - alpha))  # the inverse of softplus
            shape = () if num_heads is None else (num_heads, 1, 1)
            self.raw_alpha = nn.Parameter(torch.full(shape, start))

    @property
    def alpha(self) -> float | Tensor:
        """The fixed number, or the learned tensor: () or (heads, 1, 1)."""
        return 1.0 + F.softplus(self.raw_alpha) if self.fixed_alpha is None else self.fixed_alpha

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Categorical(entmax(scores, mask=mask, alpha=self.alpha), training=self.training)
