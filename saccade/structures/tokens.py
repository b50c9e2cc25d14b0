"""Moves missing words to the end."""

import torch
from torch import Tensor


def pack(present: Tensor | None, arcs: Tensor) -> tuple[Tensor | None, Tensor]:
    """The order that puts present words first, and their number (*batch,); arcs (*batch, n, n)."""
    batch, size = arcs.shape[:-2], arcs.shape[-1]
    if present is None:
        return None, torch.full(batch, size, dtype=torch.long, device=arcs.device)
    present = present.expand(*batch, size)
    return torch.argsort(~present, dim=-1, stable=True), present.sum(-1)


def gather_tokens(arcs: Tensor, order: Tensor | None) -> Tensor:
    """Rows and columns (*batch, n, n) in that order."""
    if order is None:
        return arcs
    rows = arcs.gather(-2, order.unsqueeze(-1).expand(arcs.shape))
    return rows.gather(-1, order.unsqueeze(-2).expand(arcs.shape))
