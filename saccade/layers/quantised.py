"""Linear layers with 8-bit weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.kernels.linear import PackedLayers, computable, quantise, quantised_linear_reference


class QuantisedLinear(nn.Module):
    r"""A linear layer whose weights, and whose inputs while it computes, are 8-bit integers. For inference.

    .. math:: y_j = s_j\, \frac{a}{127} \sum_i w_{ji} \operatorname{round}(127\, x_i / a) + b_j, \quad a = \max_i |x_i|

    Each output has its own scale s_j, and each row of inputs its own a. Processors with VNNI have
    an instruction for such numbers; elsewhere they are multiplied in float32.

    Shapes:
        (*, in_features) -> (*, out_features).
    """

    weight: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, *, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.packed = PackedLayers()
        self.register_buffer("weight", torch.zeros(out_features, in_features, dtype=torch.int8))
        self.register_buffer("scales", torch.zeros(out_features))
        self.register_buffer("bias", torch.zeros(out_features) if bias else None)

    @classmethod
    def of(cls, layer: nn.Linear) -> QuantisedLinear:
        """The layer with its weights rounded."""
        with layer.weight.device:
            made = cls(in_features=layer.in_features, out_features=layer.out_features, bias=layer.bias is not None)
        made.weight, made.scales = quantise(layer.weight)
        if layer.bias is not None:
            made.bias = layer.bias.detach().clone()
        return made.train(layer.training)

    def forward(self, inputs: Tensor) -> Tensor:
        kept = self.packed.of(self) if computable(inputs) else None
        if kept is None:
            return quantised_linear_reference(inputs, self.weight, self.scales, self.bias)
        rows = inputs.reshape(-1, self.in_features)
        return kept(rows).view(*inputs.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
