"""Linear layers that are applied many times without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.kernels import native
from saccade.kernels.linear import Activation, Packed, computable, packs, quantised_linear_reference
from saccade.kernels.private_torch import pack_weight, packed_linear


class Dense:
    """One linear layer, or several of the same inputs as one, for inference.

    In float32 on a CPU, weights are packed once for the processor, and an exact GELU is computed on the outputs while
    they are in its cache. Elsewhere it is `F.linear`.

    Shapes:
        (rows, input_dim) -> (rows, all output_dims).

    Args:
        layers: the linear layers, all of float32 or all quantised; their weights are copied.
        activation: of the outputs: `F.gelu`, `F.relu` or None.
    """

    def __init__(self, *layers: nn.Module, activation: object = None) -> None:
        self.weight = _joined([layer.weight for layer in layers])
        self.bias = _joined([layer.bias for layer in layers])
        scales = [getattr(layer, "scales", None) for layer in layers]
        self.scales = None if scales[0] is None else _joined(scales)
        self.activation = activation
        self.packed = pack_weight(self.weight)  # which has an order for float32 only
        whole = self.scales is not None and all(map(packs, layers)) and native.usable(self.bias)
        self.whole = Packed(self.weight, self.bias, self.scales) if whole else None

    def __call__(self, inputs: Tensor) -> Tensor:
        gelu = self.activation is F.gelu
        if self.whole is not None and computable(inputs):
            return self.whole(inputs.contiguous(), activation=_NAMES[self.activation])
        if self.scales is not None:
            outputs = quantised_linear_reference(inputs, self.weight, self.scales, self.bias)
            outputs = F.gelu(outputs) if gelu else outputs
        elif self.packed is None:
            outputs = F.linear(inputs, self.weight, self.bias)
            outputs = F.gelu(outputs) if gelu else outputs
        else:
            outputs = packed_linear(inputs, self.packed, self.bias, gelu=gelu)
        return outputs.relu_() if self.activation is F.relu else outputs


_NAMES: dict[object, Activation] = {None: None, F.relu: "relu", F.gelu: "gelu"}


def _joined(tensors: Sequence[Any]) -> Tensor:
    return torch.cat([tensor.detach() for tensor in tensors])
