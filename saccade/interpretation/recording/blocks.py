"""Computing weights in blocks of queries."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from saccade.interpretation.recording.recipes import Captured, Given, Recipe, Tensors, Top
from saccade.kernels.modes import exporting

BLOCK = 1 << 24
"""How many weights are computed at a time."""


def weights_of(recipe: Recipe, tensors: Tensors) -> Tensor:
    """All weights of a call, computed in blocks of queries."""
    with torch.no_grad(), no_autocast(tensors):
        recipe, tensors = recipe.resolve(tensors)
        blocks = _blocks(recipe, tensors)
        if len(blocks) == 1:
            weights = recipe.compute(tensors, blocks[0])
            return weights.clone() if isinstance(recipe, Given) else weights
        first = recipe.compute(tensors, blocks[0])
        whole = first.new_empty(recipe.shape(tensors))
        for rows in blocks:
            whole[:, :, rows] = recipe.compute(tensors, rows)
        return whole


def reduced(recipe: Recipe, tensors: Tensors, reduce: str | tuple[str, int]) -> Captured:
    """Reduced weights, without ever having all of them in memory."""
    keys = recipe.shape(tensors)[3]
    parts = []
    for rows in _blocks(recipe, tensors):
        weights = recipe.compute(tensors, rows)
        if reduce == "mean":
            parts.append((weights.mean(1, keepdim=True),))
        elif reduce == "max":
            parts.append((weights.amax(1, keepdim=True),))
        else:
            assert isinstance(reduce, tuple)
            values, places = weights.topk(min(reduce[1], keys), dim=-1)
            parts.append((values, places.int()))  # type: ignore[arg-type]
    joined = [torch.cat(part, dim=2) for part in zip(*parts, strict=True)]
    if isinstance(reduce, tuple):
        return Captured(Top(keys), {"values": joined[0], "places": joined[1]})
    return Captured(Given(), {"weights": joined[0]})


def no_autocast(tensors: Tensors) -> AbstractContextManager[object]:
    """Computes weights in single precision, even inside autocast. Lazy ones have no tensors: the model does it."""
    device = next((tensor.device.type for tensor in tensors.values()), None)
    if device is None or not torch.is_autocast_enabled(device):
        return nullcontext()
    return torch.autocast(device, enabled=False)


def _blocks(recipe: Recipe, tensors: Tensors) -> list[slice]:
    batch, heads, queries, keys = recipe.shape(tensors)
    if exporting():  # an exported program cannot depend on the sizes
        return [slice(0, queries)]
    size = max(BLOCK // max(batch * heads * keys, 1), 1)
    return [slice(start, min(start + size, queries)) for start in range(0, max(queries, 1), size)]
