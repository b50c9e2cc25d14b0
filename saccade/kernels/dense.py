"""Linear layers that are applied many times without gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.kernels.private_torch import pack_weight, packed_linear


class Dense:
    """One linear layer, or several of the same inputs as one, for inference.

    In float32 on a CPU, weights are packed once for the processor, and an exact GELU is computed on the outputs while
    they are in its cache. Elsewhere it is `F.linear`.

    Shapes:
        (rows, input_dim) -> (rows, all output_dims).

    Args:
        layers: the linear layers; their weights are copied.
        activation: of the outputs: `F.gelu`, `F.relu` or None.
    """

    def __init__(self, *layers: nn.Linear, activation: object = None) -> None:
        self.weight = _joined([layer.weight for layer in layers])
        self.bias = _joined([layer.bias for layer in layers])
        self.activation = activation
        self.packed = pack_weight(self.weight)

    def __call__(self, inputs: Tensor) -> Tensor:
        gelu = self.activation is F.gelu
        if self.packed is None:
            outputs = F.linear(inputs, self.weight, self.bias)
            outputs = F.gelu(outputs) if gelu else outputs
        else:
            outputs = packed_linear(inputs, self.packed, self.bias, gelu=gelu)
        return outputs.relu_() if self.activation is F.relu else outputs


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.detach() for tensor in tensors])
