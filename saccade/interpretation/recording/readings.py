"""What Saccade's own attention attends to, where it does not take PyTorch's fused kernels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.utils import _pytree as pytree

from saccade.distributions import Categorical
from saccade.interpretation.recording.recipes import Attended, Given, Recipe, Shape, Tensors, four
from saccade.reading import Reading


@dataclass(frozen=True, eq=False)
class Looked(Recipe):
    """The marginals of a selection, computed by the attention itself when they are looked at."""

    reading: Reading

    def shape(self, tensors: Tensors) -> Shape:
        return Given().shape(self.resolve(tensors).tensors)

    def resolve(self, tensors: Tensors) -> Attended:
        return Attended(Given(), {"weights": self.reading.weights.detach()})

    def compute(self, tensors: Tensors, rows: slice) -> Tensor:
        weights = self.reading.weights.detach()[..., rows, :]
        return weights.reshape(*four(weights.shape[:-2]), *weights.shape[-2:])

    def choose(self, tensors: Tensors, heads: list[int]) -> Attended:
        recipe, resolved = self.resolve(tensors)
        return recipe.choose(resolved, heads)


def looked(reading: Reading) -> Attended:
    """A reading, without its context and, where they can be had, without the graphs of its gradients."""
    if isinstance(reading._selection, Categorical):
        return Attended(Given(), {"weights": reading._selection.probs})
    deferred = pytree.tree_map(_detached, reading._deferred)
    return Attended(Looked(Reading(reading.context.new_empty(0), reading._selection, deferred=deferred)), {})


def _detached(value: object) -> object:
    return value.detach() if isinstance(value, Tensor) else value
