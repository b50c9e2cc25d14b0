"""How log-partition and marginals are computed: by autograd, or by native kernels where there are any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from saccade.kernels.modes import exporting, transforming
from saccade.structures.semiring import Plus, log_plus

FORBIDDEN = -1e30
"""The potential of a part that may not be used. Finite, so that no gradient is ever infinity times zero."""

Potentials = tuple[Tensor, ...]
"""One potential for each part of a structure, in one tensor or several; leading axes are batch axes."""

Direction = tuple[Tensor | None, ...]
"""A change of the potentials; None for those that stay."""

LogPartition = Callable[[Potentials, Plus], Tensor]
"""`Structure.log_partition`."""


class Backend:
    """Computes what follows from a log-partition; this one by autograd alone.

    A backend with a native kernel overrides `kernel`, and `kernel_derivative` if there is one for the derivative. One
    that compiled and exported code can call overrides `operator`.

    Args:
        name: of the structure, for errors.
        log_partition: of the structure.
    """

    native: bool = False
    """Whether `kernel` is written."""

    exportable: bool = False
    """Whether `operator` is written."""

    def __init__(self, name: str, log_partition: LogPartition) -> None:
        self.name = name
        self.log_partition = log_partition

    def kernel(self, potentials: Potentials) -> tuple[Tensor, Potentials] | None:
        """Log-partition and marginals without a graph, or None if the kernel cannot take these potentials."""
        return None

    def kernel_derivative(
        self, potentials: Potentials, marginals: Potentials, direction: Direction
    ) -> Potentials | None:
        """The change of the marginals when the potentials change along `direction`, or None as above."""
        return None

    def operator(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """`inference` as an operator that compiled and exported code can call."""
        raise NotImplementedError

    def inference(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """See `Structure.inference`."""
        if exporting() and not self.exportable:
            raise NotImplementedError(
                f"{self.name} cannot be exported: its marginals are a gradient, which cannot be traced."
            )
        if transforming():
            return _typed(potentials, *self._transformed(wide(potentials)))
        if self.native and (potentials[0].device.type == "cpu" or exporting()):
            if self.exportable and torch.compiler.is_compiling():
                return _typed(potentials, *self.operator(wide(potentials)))
            total, *marginals = _Inference.apply(self, *potentials)  # type: ignore[no-untyped-call]
            return total, tuple(marginals)
        differentiable = torch.is_grad_enabled() and any(t.requires_grad for t in potentials)
        return _typed(potentials, *gradient(self.log_partition, wide(potentials), log_plus, keep=differentiable))

    def evaluate(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """`inference` without a graph."""
        with torch.no_grad():
            fast = self.kernel(potentials)
            return fast or _typed(potentials, *gradient(self.log_partition, wide(potentials), log_plus))

    def chain_rule(self, potentials: Potentials, marginals: Potentials, grads: tuple[Tensor | None, ...]) -> Potentials:
        """The gradient of the potentials, given those of log-partition and marginals, None for zero."""
        through: Potentials | None = None
        if any(g is not None for g in grads[1:]):
            with torch.no_grad():
                through = self.kernel_derivative(potentials, marginals, grads[1:])
            through = through or self.differentiable_chain_rule(potentials, (None, *grads[1:]))
        total = grads[0]
        if total is None:
            return through or tuple(torch.zeros_like(m) for m in marginals)
        own = tuple((total.reshape(*total.shape, *(1,) * (m.dim() - total.dim())) * m).to(m.dtype) for m in marginals)
        return own if through is None else tuple(a + b for a, b in zip(own, through, strict=True))

    def differentiable_chain_rule(self, potentials: Potentials, grads: tuple[Tensor | None, ...]) -> Potentials:
        """The same by autograd, with a graph where gradients are enabled."""
        keep = torch.is_grad_enabled()
        grad_total, *direction = grads
        with torch.inference_mode(False), torch.enable_grad():
            # Seen by another name: the direction may depend on the potentials, too, and is not moved along with them.
            given = tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in wide(potentials))
            total, marginals = gradient(self.log_partition, given, log_plus, keep=True)
            moved = [(m * d).sum() for m, d in zip(marginals, direction, strict=True) if d is not None]
            outcome = torch.stack([total.new_zeros(()), *moved]).sum()
            if grad_total is not None:
                outcome = outcome + torch.where(possible(total), total * grad_total, 0.0).sum()
            if not outcome.requires_grad:
                return tuple(torch.zeros_like(t) for t in given)
            return torch.autograd.grad(outcome, given, create_graph=keep, materialize_grads=True)

    def _transformed(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """`inference` by torch.func, for what torch.func differentiates or maps."""

        def counted(*given: Tensor) -> tuple[Tensor, Tensor]:
            total = self.log_partition(given, log_plus)
            return torch.where(possible(total), total, 0.0).sum(), total

        found, total = torch.func.grad(counted, tuple(range(len(potentials))), has_aux=True)(*potentials)
        return total, found


def gradient(
    log_partition: LogPartition, potentials: Potentials, plus: Plus, keep: bool = False
) -> tuple[Tensor, Potentials]:
    """A log-partition and its gradient, zero where there is no structure; with a graph if it is to be kept."""
    with torch.inference_mode(False), torch.enable_grad():
        given = potentials if keep else tuple(t.detach().clone() for t in potentials)
        given = tuple(t if t.requires_grad else t.detach().requires_grad_() for t in given)
        total = log_partition(given, plus)
        counted = torch.where(possible(total), total, 0.0).sum()
        if not counted.requires_grad:
            return total, tuple(torch.zeros_like(t) for t in given)
        found = torch.autograd.grad(counted, given, create_graph=keep, materialize_grads=True)
    return (total, found) if keep else (total.detach(), tuple(t.detach() for t in found))


def wide(potentials: Potentials) -> Potentials:
    """The potentials in float64."""
    return tuple(t.to(torch.float64) for t in potentials)


def possible(log_partition: Tensor) -> Tensor:
    """Whether there is any structure."""
    return log_partition > FORBIDDEN / 10


def _typed(potentials: Potentials, total: Tensor, marginals: Potentials) -> tuple[Tensor, Potentials]:
    """The marginals in the potentials' types."""
    return total, tuple(m.to(t.dtype) for m, t in zip(marginals, potentials, strict=True))


class _Inference(torch.autograd.Function):
    """The marginals are a gradient; their own is a Hessian times a vector: how they change along a direction."""

    @staticmethod
    def forward(ctx: Any, backend: Backend, *potentials: Tensor) -> tuple[Tensor, ...]:
        total, marginals = backend.evaluate(potentials)
        ctx.backend = backend
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*potentials, *marginals)
        return total, *marginals

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        potentials, marginals = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        if torch.is_grad_enabled():
            return None, *ctx.backend.differentiable_chain_rule(potentials, grads)
        return None, *ctx.backend.chain_rule(potentials, marginals, grads)
