"""The input of teacher forcing."""

import torch
from torch import Tensor


def shift_right(target: Tensor, start: int) -> Tensor:
    """The decoder input for target (*, steps): the start token, then all target tokens but the last."""
    return torch.cat([torch.full_like(target[..., :1], start), target[..., :-1]], dim=-1)
