"""Fertility loss."""

import math

import torch
from torch import Tensor, nn

from saccade.losses.base import Reduction, reduce, valid_weights
from saccade.masks import Mask


class GlobalFertility(nn.Module):
    r"""The negative log-density of the attention that each key receives over all steps.

    .. math:: \ell = -\sum_i \log \mathcal{N}(f_i;\, \mu_i, \sigma_i^2), \qquad f_i = \sum_j \alpha_{ji}, \qquad
        (\mu_i, \log \sigma_i^2) = V \tanh(W h_i) + b

    h_i are the keys. The log-variance is clamped to [-7, 3]; the loss is a negative log-density, so it may be negative.

    Shapes:
        weights (*batch, steps, keys), keys (*batch, keys, key_dim), step_mask (*batch, steps), key_mask
        (*batch, keys), True = valid -> the mean or sum over the sentences of the batch, or (*batch,).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, global fertility.
    """

    def __init__(self, *, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.key_dim = key_dim
        self.key_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.moments_proj = nn.Linear(hidden_dim, 2)

    def moments(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of the fertility of each key, (*batch, keys) each."""
        if keys.shape[-1] != self.key_dim:
            raise ValueError(
                f"keys of shape {tuple(keys.shape)} have {keys.shape[-1]} features, but GlobalFertility was built with "
                f"key_dim={self.key_dim}."
            )
        mean, log_variance = self.moments_proj(torch.tanh(self.key_proj(keys))).unbind(-1)
        return mean, log_variance.clamp(-7.0, 3.0)

    def forward(
        self,
        weights: Tensor,
        keys: Tensor,
        *,
        step_mask: Tensor | Mask | None = None,
        key_mask: Tensor | Mask | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        weights, _, valid_keys = valid_weights(weights, step_mask, key_mask)
        mean, log_variance = (moment.to(weights.dtype) for moment in self.moments(keys))
        squared = (weights.sum(-2) - mean).square() * torch.exp(-log_variance)
        nll = 0.5 * (squared + log_variance + math.log(2.0 * math.pi))
        return reduce(torch.where(valid_keys, nll, 0.0).sum(-1), reduction)
