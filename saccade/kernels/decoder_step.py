"""One step of all layers of a Transformer decoder by one kernel; the plain reference is `TransformerDecoder.step`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels import native
from saccade.kernels.linear import ACTIVATIONS, Activation, Packed

MOST_LANES = 16
"""Numbers in the longest vector of any processor."""


class Norm(NamedTuple):
    """The gain and bias (dim,) of a layer normalisation."""

    gain: Tensor
    bias: Tensor


class Layer(NamedTuple):
    """One layer: linear maps, and normalisations around self-attention, attention to the source and feed-forward."""

    query: Packed
    key: Packed
    value: Packed
    output: Packed
    across_query: Packed
    across_output: Packed
    hidden: Packed
    back: Packed
    norms: tuple[Norm, Norm, Norm]

    def fields(self) -> list[int]:
        """`struct layer` of source/decoder_step.h without the source."""
        linears = [part for part in self if isinstance(part, Packed)]
        norms = [part.data_ptr() for norm in self.norms for part in norm]
        return [*(field for linear in linears for field in linear.fields), *norms]


class Source:
    """What each layer attends to: keys and values (sentences, heads, length, size), and a mask (sentences, length).

    Keys are copied with positions next to each other, so that a query is compared with many at once.
    """

    def __init__(
        self,
        keys: Sequence[Float[Tensor, "b h s d"]],
        values: Sequence[Float[Tensor, "b h s d"]],
        mask: Bool[Tensor, "b s"],
        layers: Sequence[Layer],
    ) -> None:
        self.length = mask.shape[1]
        self.room = -(-self.length // MOST_LANES) * MOST_LANES
        self.keys = [F.pad(each.transpose(2, 3), (0, self.room - self.length)).contiguous() for each in keys]
        alike = values[0].stride(-1) == 1 and all(each.stride() == values[0].stride() for each in values)
        self.values = values if alike else [each.contiguous() for each in values]
        self.mask = mask.contiguous()
        self.layers = torch.tensor(
            [
                [*layer.fields(), keys.data_ptr(), values.data_ptr()]
                for layer, keys, values in zip(layers, self.keys, self.values, strict=True)
            ]
        )
        """`struct layer` of source/decoder_step.h for each layer."""


class PastSteps(NamedTuple):
    """The earlier steps: for each one the keys and values (layers, its rows, 2, dim) where it wrote them.

    Args:
        steps: in the order in which they were computed.
        ancestry: (rows, steps), the row of each step that each hypothesis continues.
        sentences: (rows,), the sentence of the source that each hypothesis belongs to.
    """

    steps: tuple[Tensor, ...]
    ancestry: Int[Tensor, "r t"]
    sentences: Int[Tensor, " r"]


class Computed(NamedTuple):
    """What a step computes.

    Args:
        features: (rows, dim).
        now: its keys and values, for `PastSteps.steps`.
        weights: (rows, length), the mean over heads of the last layer's attention to the source.
    """

    features: Tensor
    now: Tensor
    weights: Tensor


class DecoderWeights(NamedTuple):
    """The layers of a decoder whose attentions are softmax over inner products times `scale`."""

    layers: Sequence[Layer]
    final: Norm | None
    heads: int
    before: bool
    """Whether normalisation comes before each sublayer, or else after its sum."""

    activation: Activation
    epsilon: float
    scale: float

    def __call__(self, inputs: Float[Tensor, "r d"], source: Source, past: PastSteps) -> Computed:
        """Computes one step for contiguous float32 inputs, if `native.usable`."""
        rows, dim = inputs.shape
        now = inputs.new_empty(len(self.layers), rows, 2, dim)
        weights = inputs.new_empty(rows, source.length)
        features = torch.empty_like(inputs)
        steps = torch.tensor([step.data_ptr() for step in past.steps])
        counts = torch.tensor([step.shape[1] for step in past.steps])
        final = None if self.final is None else torch.tensor([part.data_ptr() for part in self.final])
        hidden = self.layers[0].hidden.output_dim
        numbers = [len(self.layers), dim, self.heads, hidden, int(self.before), ACTIVATIONS.index(self.activation)]
        numbers += [rows, len(past.steps), source.length, source.room, *source.values[0].stride()[:3]]
        rows_of = (past.ancestry.contiguous(), past.sentences.contiguous())
        tensors = (source.layers, final, steps, counts, *rows_of, source.mask, now, weights)
        table = torch.tensor([*numbers, *(0 if each is None else each.data_ptr() for each in tensors)])
        native.check(
            native.run(
                native.function("decoder_step", torch.float32),
                table,
                inputs,
                features,
                self.epsilon,
                self.scale,
                items=rows,
                alive=(self, source, past, tensors),
                operations=float(rows * len(self.layers) * dim * (6 * dim + 2 * hidden)),
            )
        )
        return Computed(features, now, weights)
