"""Common base of dependency trees: missing words, roots, and kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.kernels.structured import tree_derivative, tree_marginals
from saccade.structures.backend import Backend, Direction, Potentials
from saccade.structures.base import Structure


class Trees(Structure):
    """Dependency trees over n words.

    Shapes:
        potentials: one tensor (*batch, n, n), rows = dependents, columns = heads, roots on the diagonal.

    Args:
        present: bool (*batch, n), True for words that are present; None for all of them.
        single_root: whether exactly one word is a root, rather than one or more.
    """

    event_dims = 2
    projective: bool

    def __init__(self, present: Tensor | None = None, single_root: bool = True) -> None:
        self.present = present
        self.single_root = single_root

    def backend(self) -> TreeBackend:
        return TreeBackend(self)


class TreeBackend(Backend):
    """Trees by native kernels, on the CPU."""

    native = exportable = True

    def __init__(self, trees: Trees) -> None:
        super().__init__(type(trees).__name__, trees.log_partition)
        self.own = (trees.present, trees.projective, trees.single_root)

    def kernel(self, potentials: Potentials) -> tuple[Tensor, Potentials] | None:
        done = tree_marginals(potentials[0], *self.own)
        return None if done is None else (done[0], done[1:])

    def kernel_derivative(
        self, potentials: Potentials, marginals: Potentials, direction: Direction
    ) -> Potentials | None:
        assert direction[0] is not None  # there is but one
        done = tree_derivative(potentials[0], *self.own, marginals[0], direction[0])
        return None if done is None else (done,)

    def operator(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        total, marginals = tree_inference(potentials[0], *self.own)
        return total, (marginals,)


def _backend(present: Tensor | None, projective: bool, single_root: bool) -> Backend:
    """An operator takes plain values, and makes its trees from them."""
    kind = next(each for each in Trees.__subclasses__() if each.projective is projective)
    return kind(present, single_root).backend()


@torch.library.custom_op("saccade::tree_inference", mutates_args=())
def tree_inference(arcs: Tensor, present: Tensor | None, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    """`Trees.inference`, for compiled code."""
    total, (marginals,) = _backend(present, projective, single_root).evaluate((arcs,))
    return total, marginals


@torch.library.custom_op("saccade::tree_inference_backward", mutates_args=())
def tree_inference_backward(
    arcs: Tensor,
    present: Tensor | None,
    projective: bool,
    single_root: bool,
    marginals: Tensor,
    grad_total: Tensor,
    grad_marginals: Tensor,
) -> Tensor:
    """Its gradient."""
    backend = _backend(present, projective, single_root)
    return backend.chain_rule((arcs,), (marginals,), (grad_total, grad_marginals))[0]


@tree_inference.register_fake
def _(arcs: Tensor, present: Tensor | None, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    return arcs.new_empty(arcs.shape[:-2], dtype=torch.float64), arcs.new_empty(arcs.shape)


@tree_inference_backward.register_fake
def _(arcs: Tensor, *rest: Any) -> Tensor:
    return arcs.new_empty(arcs.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    arcs, present, ctx.projective, ctx.single_root = inputs
    ctx.save_for_backward(arcs, *(() if present is None else (present,)), output[1])
    ctx.masked = present is not None


def _derive(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    arcs, *present, marginals = ctx.saved_tensors
    given = present[0] if ctx.masked else None
    gradient = tree_inference_backward(arcs, given, ctx.projective, ctx.single_root, marginals, *grads)
    return gradient, None, None, None


tree_inference.register_autograd(_derive, setup_context=_save)
