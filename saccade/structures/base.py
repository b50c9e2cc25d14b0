"""The base class of structures."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.kernels.modes import exporting, transforming
from saccade.structures.semiring import Plus, log_plus, max_plus, sample_plus

FORBIDDEN = -1e30
"""The potential of a part that may not be used; finite, so that no gradient is ever infinity times zero."""

Potentials = tuple[Tensor, ...]
"""One potential per part of a structure, in one or more tensors; leading axes are batch axes."""

Direction = tuple[Tensor | None, ...]
"""A change of the potentials; None for those that do not change."""


class Structure:
    r"""A set of structures made of parts; the weight of a structure is the sum of its parts' potentials.

    .. math:: p(z) = \frac{\exp \langle \theta, z \rangle}{Z(\theta)}, \qquad
        \mathbb{E}[z] = \frac{\partial \log Z}{\partial \theta}

    A new structure only implements `log_partition`, as a differentiable program over `plus`: marginals, mode, samples
    and entropy follow. Potentials are float64, with `FORBIDDEN` for forbidden parts; if every structure is forbidden,
    nothing is picked and all parts are zero. `inference` also accepts float32.
    """

    event_dims: int = 1
    """The number of trailing axes of the first potentials that one structure spans."""

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        """(*batch,): the log of the sum over all structures of the exponential of their weight.

        Every sum over alternatives is `plus(alternatives, dim)`; the weights of parts that occur together are added. No
        alternative may be counted twice.
        """
        raise NotImplementedError

    def inference(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """The log-partition, and P(part is used) for every part; both can be differentiated repeatedly.

        Where no structure exists, the log-partition is below `FORBIDDEN` / 10 and the marginals are zero. All
        computation is in float64, as is the log-partition; the marginals have the dtype of the potentials.
        """
        if exporting() and not self.has_operator:
            raise NotImplementedError(
                f"{type(self).__name__} cannot be exported: its marginals are a gradient, which cannot be traced."
            )
        if transforming():
            return _typed(potentials, *self._transformed(wide(potentials)))
        if self.has_kernel and (potentials[0].device.type == "cpu" or exporting()):
            if self.has_operator and torch.compiler.is_compiling():
                return _typed(potentials, *self.operator(wide(potentials)))
            total, *marginals = _Inference.apply(self, *potentials)  # type: ignore[no-untyped-call]
            return total, tuple(marginals)
        differentiable = torch.is_grad_enabled() and any(t.requires_grad for t in potentials)
        return _typed(potentials, *self._gradient(wide(potentials), log_plus, keep=differentiable))

    marginal_error: float = 0.0
    """How far the marginals of unusable parts may differ from zero."""

    has_kernel: bool = False
    """Whether there is a faster implementation, in `kernel`."""

    has_operator: bool = False
    """Whether `operator` is implemented, for compiled or exported code."""

    def kernel(self, potentials: Potentials) -> tuple[Tensor, Potentials] | None:
        """Log-partition and marginals without a graph, or None if the kernel cannot handle these potentials."""
        raise NotImplementedError

    def kernel_derivative(
        self, potentials: Potentials, marginals: Potentials, direction: Direction
    ) -> Potentials | None:
        """The derivative of the marginals when the potentials change along `direction`; None as above."""
        return None

    def operator(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """`inference` as an operator that compiled and exported code can call."""
        raise NotImplementedError

    def evaluate(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """`inference` without a graph."""
        with torch.no_grad():
            fast = self.kernel(potentials)
            return fast or _typed(potentials, *self._gradient(wide(potentials), log_plus))

    def derivative(self, potentials: Potentials, marginals: Potentials, direction: Direction) -> Potentials:
        """The Hessian of the log-partition times `direction`, without a graph."""
        with torch.no_grad():
            fast = self.kernel_derivative(potentials, marginals, direction)
        return fast or self.differentiable_derivative(potentials, None, direction)

    def differentiable_derivative(
        self, potentials: Potentials, grad_total: Tensor | None, direction: Direction
    ) -> Potentials:
        """The gradient through log-partition and marginals, with a graph if gradients are enabled."""
        keep = torch.is_grad_enabled()
        with torch.inference_mode(False), torch.enable_grad():
            # A separate view: the direction may depend on the potentials too, and must not be differentiated with them.
            given = tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in wide(potentials))
            total, marginals = self._gradient(given, log_plus, keep=True)
            moved = [(m * d).sum() for m, d in zip(marginals, direction, strict=True) if d is not None]
            outcome = torch.stack([total.new_zeros(()), *moved]).sum()
            if grad_total is not None:
                outcome = outcome + torch.where(possible(total), total * grad_total, 0.0).sum()
            if not outcome.requires_grad:
                return tuple(torch.zeros_like(t) for t in given)
            return torch.autograd.grad(outcome, given, create_graph=keep, materialize_grads=True)

    def best(self, potentials: Potentials) -> Potentials:
        """The parts of a structure with the largest weight, as zeros and ones."""
        return self._gradient(potentials, max_plus)[1]

    def sample(self, potentials: Potentials, n: int) -> Potentials:
        """The parts of `n` exact samples, on a new first axis."""
        return self._gradient(tuple(t.expand(n, *t.shape) for t in potentials), sample_plus)[1]

    def weight(self, potentials: Potentials, parts: Potentials) -> Tensor:
        """(*batch,): the weight of the structure with these parts."""
        batch_dims = potentials[0].dim() - self.event_dims
        totals = [
            torch.where(part != 0, part * theta, 0.0).flatten(batch_dims - theta.dim()).sum(-1)
            for part, theta in zip(parts, potentials, strict=True)
        ]
        return torch.stack(torch.broadcast_tensors(*totals)).sum(0)

    def contains(self, parts: Potentials) -> Tensor:
        """(*batch,) bool: whether these parts, zeros and ones, form a structure of the set."""
        # The best structure for these parts as potentials reaches their number only if it is this one.
        only = tuple(torch.where(part == 1, 1.0, FORBIDDEN).to(torch.float64) for part in parts)
        batch_dims = parts[0].dim() - self.event_dims
        wanted = torch.stack([(part == 1).flatten(batch_dims).sum(-1) for part in parts]).sum(0)
        return self.log_partition(only, max_plus) == wanted

    def _transformed(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """The same through torch.func, for use inside torch.func transforms."""

        def counted(*given: Tensor) -> tuple[Tensor, Tensor]:
            total = self.log_partition(given)
            return torch.where(possible(total), total, 0.0).sum(), total

        gradient, total = torch.func.grad(counted, tuple(range(len(potentials))), has_aux=True)(*potentials)
        return total, gradient

    def _gradient(self, potentials: Potentials, plus: Plus, keep: bool = False) -> tuple[Tensor, Potentials]:
        """The log-partition and its gradient, zero where no structure exists."""
        with torch.inference_mode(False), torch.enable_grad():
            given = potentials if keep else tuple(t.detach().clone() for t in potentials)
            given = tuple(t if t.requires_grad else t.detach().requires_grad_() for t in given)
            total = self.log_partition(given, plus)
            counted = torch.where(possible(total), total, 0.0).sum()
            if not counted.requires_grad:
                return total, tuple(torch.zeros_like(t) for t in given)
            gradient = torch.autograd.grad(counted, given, create_graph=keep, materialize_grads=True)
        return (total, gradient) if keep else (total.detach(), tuple(t.detach() for t in gradient))


def wide(potentials: Potentials) -> Potentials:
    """In float64."""
    return tuple(t.to(torch.float64) for t in potentials)


def _typed(potentials: Potentials, total: Tensor, marginals: Potentials) -> tuple[Tensor, Potentials]:
    """The marginals in the dtypes of the potentials."""
    return total, tuple(m.to(t.dtype) for m, t in zip(marginals, potentials, strict=True))


def possible(log_partition: Tensor) -> Tensor:
    """Whether any structure exists."""
    return log_partition > FORBIDDEN / 10


class _Inference(torch.autograd.Function):
    """The marginals are a gradient; their own gradient is a Hessian-vector product."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, *potentials: Tensor) -> tuple[Tensor, ...]:
        total, marginals = structure.evaluate(potentials)
        ctx.structure = structure
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*potentials, *marginals)
        return total, *marginals

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        potentials, marginals = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        if torch.is_grad_enabled():
            return None, *ctx.structure.differentiable_derivative(potentials, grads[0], grads[1:])
        return None, *chain_rule(ctx.structure, potentials, marginals, grads)


def chain_rule(
    structure: Structure, potentials: Potentials, marginals: Potentials, grads: tuple[Tensor | None, ...]
) -> Potentials:
    """The gradient of the potentials, given those of log-partition and marginals; None means zero."""
    through: Potentials | None = None
    if any(g is not None for g in grads[1:]):
        through = structure.derivative(potentials, marginals, grads[1:])
    total = grads[0]
    if total is None:
        return through or tuple(torch.zeros_like(m) for m in marginals)
    own = tuple((total.reshape(*total.shape, *(1,) * (m.dim() - total.dim())) * m).to(m.dtype) for m in marginals)
    return own if through is None else tuple(a + b for a, b in zip(own, through, strict=True))
