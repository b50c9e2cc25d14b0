"""Equations read off the page: one pair, or one step, at a time."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

BATCH, QUERIES, KEYS, QUERY_DIM, KEY_DIM, HIDDEN = 2, 3, 7, 5, 11, 13


def random_inputs(*, same_dim: bool = False, queries: int = QUERIES, keys: int = KEYS) -> tuple[Tensor, Tensor]:
    query = torch.randn(BATCH, queries, KEY_DIM if same_dim else QUERY_DIM, dtype=torch.float64)
    return query, torch.randn(BATCH, keys, KEY_DIM, dtype=torch.float64)


def randomised(module: nn.Module) -> nn.Module:
    """In double precision, with no parameter at a special value such as zero."""
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module


def pair_by_pair(pair: Callable[[Tensor, Tensor], Tensor], query: Tensor, keys: Tensor) -> Tensor:
    """pair(q, k) for every query and key of every batch row."""
    rows = [
        torch.stack([torch.stack([pair(q, k) for k in row_keys]) for q in row_query])
        for row_query, row_keys in zip(query, keys, strict=True)
    ]
    return torch.stack(rows)


def assert_near(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)
