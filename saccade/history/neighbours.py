"""Weights of a key and its neighbours."""

import torch
from torch import Tensor
from torch.nn import functional as F


def neighbours(weights: Tensor) -> Tensor:
    """(*batch, 1, keys) -> (*batch, keys, 3): the weights at j - 1, j, j + 1, zeros beyond the ends."""
    padded = F.pad(weights.squeeze(-2), (1, 1))
    keys = weights.shape[-1]
    return torch.stack([padded[..., shift : shift + keys] for shift in range(3)], dim=-1)
