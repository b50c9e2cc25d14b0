"""What models of two texts share: one set of weights for both, and features that compare them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def compared(a: Tensor, b: Tensor) -> Tensor:
    r"""Two vectors (*batch, dim) with features that compare them, (*batch, 4 * dim).

    .. math:: [a; b; |a - b|; a \odot b]

    Reference:
        Mou et al. (2016), arXiv:1512.08422, section 3.3.
    """
    return torch.cat([a, b, (a - b).abs(), a * b], dim=-1)


def tie(module: nn.Module, to: nn.Module) -> None:
    """Shares parameters of the same name and shape between two modules.

    They stay separate modules, so that their attentions are recorded separately.
    """
    own = dict(module.named_parameters())
    for name, parameter in to.named_parameters():
        if name in own and own[name].shape == parameter.shape:
            owner, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(owner), leaf, parameter)
