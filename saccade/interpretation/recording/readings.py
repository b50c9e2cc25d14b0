"""Saccade's own attention, where it does not use PyTorch's fused kernels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from saccade.distributions import Categorical
from saccade.interpretation.recording.recipes import Captured, Given, Recipe, Shape, Tensors, four
from saccade.kernels.nested import map_tensors
from saccade.reading import Reading


@dataclass(frozen=True, eq=False)
class Lazy(Recipe):
    """The marginals of a selection, which the attention itself computes when they are read."""

    reading: Reading

    def shape(self, tensors: Tensors) -> Shape:
        return Given().shape(self.resolve(tensors).tensors)

    def sizes(self, tensors: Tensors) -> None:
        return None

    def resolve(self, tensors: Tensors) -> Captured:
        return Captured(Given(), {"weights": self.reading.weights.detach()})

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        weights = self.reading.weights.detach()[..., rows, :]
        return weights.reshape(*four(weights.shape[:-2]), *weights.shape[-2:])

    def choose(self, tensors: Tensors, heads: list[int]) -> Captured:
        recipe, resolved = self.resolve(tensors)
        return recipe.choose(resolved, heads)


def attended_by(reading: Reading) -> Captured:
    """A reading without its context and, where possible, without its autograd graph."""
    drawn = None if reading._selection is None else reading._selection.picked
    picked = {} if drawn is None else {"picked": drawn}
    if isinstance(reading._selection, Categorical):
        return Captured(Given(), {"weights": reading._selection.probs, **picked})
    deferred = map_tensors(Tensor.detach, reading._deferred)
    return Captured(Lazy(Reading(reading.context.new_empty(0), reading._selection, deferred=deferred)), picked)
