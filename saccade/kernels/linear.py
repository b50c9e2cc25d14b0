"""Linear layers with weights packed once: in float32, or as 8-bit integers."""

from __future__ import annotations

from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.kernels import native
from saccade.kernels.private_torch import version
from saccade.kernels.top_log_probs import top_log_probs_reference

Activation = Literal["relu", "gelu"] | None
ACTIVATIONS: tuple[Activation, ...] = (None, "relu", "gelu")
"""In the order in which the kernel numbers them."""
LARGEST = 127


def quantise(weight: Float[Tensor, "o i"]) -> tuple[Int8[Tensor, "o i"], Float[Tensor, " o"]]:
    """The weight as whole numbers from -127 to 127, and the scale of each output: weight = whole * scale, rounded."""
    scales = weight.detach().abs().amax(dim=1) / LARGEST
    whole = weight.detach() / scales.clamp(min=torch.finfo(weight.dtype).tiny)[:, None]
    return whole.round().to(torch.int8), scales


def quantised_linear_reference(
    inputs: Float[Tensor, "n i"],
    weight: Int8[Tensor, "o i"],
    scales: Float[Tensor, " o"],
    bias: Float[Tensor, " o"] | None,
) -> Float[Tensor, "n o"]:
    """Rounds each row of inputs to whole numbers from -127 to 127 of its largest magnitude, and multiplies those.

    The whole numbers are multiplied in float32, which is exact up to about 1,000 inputs.
    """
    top = inputs.abs().amax(dim=-1, keepdim=True)
    whole = (inputs * torch.where(top > 0, LARGEST / top, 0.0)).round()
    outputs = F.linear(whole, weight.to(inputs.dtype)) * (scales * (top / LARGEST))
    return outputs if bias is None else outputs + bias


class Packed:
    """A linear layer in the order in which the kernels read it; a copy that does not follow later changes.

    Args:
        weight: (out, in), float32, or int8 with `scales` (out,).
        bias: (out,), float32, or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, scales: Tensor | None = None) -> None:
        columns = native.count("linear_columns", torch.float32)
        out, features = weight.shape
        more = -out % columns
        weight = F.pad(weight.detach(), (0, 0, 0, more))
        if scales is None:
            self.packed = weight.unflatten(0, (-1, columns)).transpose(1, 2).contiguous()
        else:
            weight = F.pad(weight, (0, -features % 4)).unflatten(0, (-1, columns)).unflatten(2, (-1, 4))
            self.packed = weight.transpose(1, 2).contiguous()
        self.bias = weight.new_zeros(out + more, dtype=torch.float32)
        if bias is not None:
            self.bias[:out] = bias.detach()
        self.scales = None if scales is None else F.pad(scales.detach(), (0, more)).contiguous()
        self.sums = None
        if scales is not None:  # the kernel multiplies inputs that are larger by 128, and takes this off again
            self.sums = (128 * self.packed.sum(dim=(1, 3), dtype=torch.int32)).flatten().contiguous()
        self.input_dim, self.output_dim = features, out
        tensors = (self.packed, self.bias, self.scales, self.sums)
        self.fields = [*(0 if each is None else each.data_ptr() for each in tensors), features, out]
        """`struct linear` of source/linear.h; valid while this object is there."""

    def __call__(self, inputs: Float[Tensor, "n i"], *, activation: Activation = None) -> Float[Tensor, "n o"]:
        """The outputs for float32 inputs, if `native.usable`."""
        outputs = inputs.new_empty(len(inputs), self.output_dim)
        self._run("linear", inputs.contiguous(), outputs, ACTIVATIONS.index(activation), rows=len(inputs))
        return outputs

    def top_log_probs(
        self, features: Float[Tensor, "n i"], count: int, without: Int[Tensor, " w"]
    ) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
        """The `count` largest log-probabilities of the outputs and their classes, except excluded classes."""
        rows, count = len(features), min(count, self.output_dim)
        values = features.new_empty(rows, count)
        ids = torch.empty(rows, count, dtype=torch.long)
        self._run(
            "linear_top", features.contiguous(), without.contiguous(), len(without), count, values, ids, rows=rows
        )
        return values, ids

    def _run(self, name: str, inputs: Tensor, *arguments: Tensor | int, rows: int) -> None:
        table = torch.tensor(self.fields)
        operations = float(rows * self.input_dim * self.output_dim)
        kernel = native.function(name, torch.float32)
        native.check(native.run(kernel, table, inputs, *arguments, items=rows, operations=operations, alive=self))


def packs(layer: nn.Module) -> bool:
    """Whether a layer can be packed: a float32 `nn.Linear`, or a layer of whole numbers on a fast processor."""
    if type(layer) is not nn.Linear:
        scales = getattr(layer, "scales", None)
        return isinstance(scales, Tensor) and scales.is_cpu and native.count("linear_whole", torch.float32) == 1
    tensors = (layer.weight,) if layer.bias is None else (layer.weight, layer.bias)
    return all(each.dtype is torch.float32 for each in tensors) and native.usable(*tensors)


class PackedLayers:
    """The packed layers of the module that owns this, each packed when it is first used and again when it changes.

    Copies and pickles of the module start without them: they contain addresses.
    """

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[nn.Module, _Kept] = WeakKeyDictionary()

    def of(self, layer: nn.Module) -> Packed | None:
        """The layer packed for the kernels; None if it cannot be packed.

        Changes behind PyTorch's back, through `weight.data`, are not noticed.
        """
        if not packs(layer):
            return None
        tensors = [layer.weight, layer.bias, getattr(layer, "scales", None)]
        given = [each for each in tensors if isinstance(each, Tensor)]
        mark = tuple((each.data_ptr(), version(each)) for each in given)
        kept = self._kept.get(layer)
        if kept is None or kept.mark != mark or any(each.is_inference() for each in given):
            kept = _Kept(Packed(*tensors), mark, [each.detach() for each in given])  # type: ignore[arg-type]
            self._kept[layer] = kept
        return kept.packed

    def __deepcopy__(self, memo: dict[int, object]) -> PackedLayers:
        return PackedLayers()

    def __reduce__(self) -> tuple[type[PackedLayers], tuple[()]]:
        return PackedLayers, ()


class _Kept(NamedTuple):
    packed: Packed
    mark: tuple[tuple[int, int], ...]
    alive: list[Tensor]
    """So that no other tensor takes their addresses."""


def top_of_linear(
    features: Float[Tensor, "n i"], layer: nn.Module, count: int, without: Int[Tensor, " w"], *, layers: PackedLayers
) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
    """The `count` largest log-probabilities of a linear layer's outputs; the outputs are never held at once.

    Excluded classes still count in the normalisation. Ties go to the earlier class. No gradient. `layers` keeps the
    packed layer.
    """
    kept = layers.of(layer) if count and computable(features) else None
    if kept is None:
        return top_log_probs_reference(layer(features).float(), count, without)
    return kept.top_log_probs(features, count, without)


def computable(inputs: Tensor) -> bool:
    """Whether the kernels take these inputs: float32 on a CPU, without gradients."""
    return inputs.dtype is torch.float32 and not torch.is_grad_enabled() and native.usable(inputs)
