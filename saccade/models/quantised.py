"""Models whose largest linear layers have 8-bit weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from saccade.layers.quantised import QuantisedLinear


def quantisable(model: nn.Module) -> list[str]:
    """The names of the linear layers that `quantise_layers` can replace: those in modules with `quantisable = True`.

    Such a module uses its linear layers only by calling them. Most of a model's time is spent in these layers.
    """
    homes = [(name, module) for name, module in model.named_modules() if getattr(module, "quantisable", False)]
    return [f"{name}.{own}" for name, home in homes for own, layer in home.named_children() if type(layer) is nn.Linear]


def quantise_layers(model: nn.Module, names: Iterable[str]) -> nn.Module:
    """Replaces these linear layers, in place, with 8-bit ones; returns the model.

    Weights that a layer shares with embeddings stay there as they are.
    """
    for name in names:
        home, _, own = name.rpartition(".")
        layer = model.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        setattr(model.get_submodule(home), own, QuantisedLinear.of(layer))
    return model


def is_quantised(model: nn.Module) -> bool:
    """Whether any of the layers has 8-bit weights."""
    return any(isinstance(module, QuantisedLinear) for module in model.modules())


def quantised_in(dtypes: Mapping[str, torch.dtype], model: nn.Module) -> list[str]:
    """The names of the layers of `model` whose weights are 8-bit in a file with these tensors."""
    return [name for name in quantisable(model) if dtypes.get(f"{name}.weight") is torch.int8]
