"""A few logits of an output layer, and the sum of all."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 2 * 1024 * 1024
"""Number of logits held at once."""


class Picked(NamedTuple):
    """What a mixture needs to know of all logits.

    Args:
        total: (*,), log of the sum of their exponentials.
        logits: (*, picks), those that were asked for.
        highest: (*,), the largest; without a gradient.
    """

    total: Tensor
    logits: Tensor
    highest: Tensor


def picked_logits(logits: Float[Tensor, "*b v"], picks: Int[Tensor, "*b k"]) -> Picked:
    """The total, the picked ones and the highest of all logits, in float32 or better."""
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return Picked(exact.logsumexp(-1), exact.gather(-1, picks), exact.detach().amax(-1))


def chunks(rows: int, vocab: int) -> list[slice]:
    """Rows whose logits are held at once."""
    size = max(1, CHUNK // max(1, vocab))
    return [slice(start, min(rows, start + size)) for start in range(0, rows, size)]


def linear(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """features @ weight^T + bias, a new tensor."""
    return torch.mm(features, weight.T) if bias is None else torch.addmm(bias, features, weight.T)
