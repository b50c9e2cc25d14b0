"""The one graph of a model that answers at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saccade.attention import Attention
from saccade.export.graphs import Graph, axes_between
from saccade.reading import Reading


class Whole(nn.Module):
    """Logits, followed by the weights (batch, heads, queries, keys) of every attention."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        with readings(self.model) as found:
            logits = self.model(*inputs)
        return (logits, *weights_of(found).values())


@contextlib.contextmanager
def readings(model: nn.Module) -> Iterator[dict[str, list[Reading]]]:
    """Within it, the readings of every attention of a model are noted, by the name of its module."""
    found: dict[str, list[Reading]] = {}
    named = {id(part): name for name, part in model.named_modules() if isinstance(part, Attention)}
    attentions = [part for part in model.modules() if isinstance(part, Attention)]

    def noting(attention: Attention) -> Callable[..., Reading]:
        name = named[id(attention)].replace(".", "_").removesuffix("_attention_attention")
        read = type(attention).read

        def noted(*arguments: Any, **options: Any) -> Reading:
            reading = read(attention, *arguments, **options)
            found.setdefault(name or "attention", []).append(reading)
            return reading

        return noted

    for attention in attentions:
        object.__setattr__(attention, "read", noting(attention))
    try:
        yield found
    finally:
        for attention in attentions:
            object.__delattr__(attention, "read")


def weights_of(found: Mapping[str, list[Reading]]) -> dict[str, Tensor]:
    """The weights of attentions that read once, by the name of the output."""
    weights = {name: several[0].weights for name, several in found.items() if len(several) == 1}
    return {f"weights_{name}": each if each.dim() == 4 else each.unsqueeze(1) for name, each in weights.items()}


@torch.no_grad()
def whole_graph(model: nn.Module, make: Callable[[int, int], dict[str, Tensor]]) -> Graph:
    """The model as one graph.

    Args:
        model: in evaluation mode.
        make: its inputs by name, for so many examples of at most so many positions.
    """
    given, other = make(3, 7), make(5, 11)
    with readings(model) as found:
        model(*given.values())
    weights = weights_of(found)
    sizes = {(3, 5): "batch", **{(7 + 2 * n, 11 + 2 * n): f"length{f'_{n + 1}' if n else ''}" for n in range(4)}}
    pooled = [name for name, each in weights.items() if each.shape[2] == 1 or "pooling" in name.split("_")]
    first = not pooled and "segments" in " ".join(given)
    deciding = pooled or (list(weights) if first else [])
    looks = deciding[-1] if deciding else None
    axes = axes_between(given, other, sizes)
    return Graph("model", Whole(model), given, ["logits", *weights], axes, looks=looks, first=first)
