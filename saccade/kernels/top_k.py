"""The largest entries of the last axis; ties go to the earlier entry."""

import torch
from torch import Tensor


def among_largest(x: Tensor, k: int) -> Tensor:
    """bool, in the shape of x: the k largest entries of each row, or all if there are fewer; no gradient."""
    x = x.detach()
    if k >= x.shape[-1]:
        return torch.ones_like(x, dtype=torch.bool)
    # `topk` breaks ties arbitrarily, so it only gives the threshold; a stable sort takes many times as long.
    line = x.topk(k, dim=-1).values[..., -1:]
    above, level = x > line, x == line
    return above | (level & (level.cumsum(-1) <= k - above.sum(-1, keepdim=True)))


def largest(x: Tensor, k: int) -> Tensor:
    """(..., min(k, keys)): the indices of these entries, in descending order; no gradient."""
    size = x.shape[-1]
    earlier_is_more = torch.arange(size, 0, -1, device=x.device)
    places = torch.where(among_largest(x, k), earlier_is_more, 0).topk(min(k, size), dim=-1).indices
    order = x.detach().gather(-1, places).sort(dim=-1, descending=True, stable=True).indices
    return places.gather(-1, order)
