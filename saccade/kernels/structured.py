"""Marginals of structures and their derivatives, by C kernels.

Each function returns None if the kernels cannot be used: no compiler, another device, or potentials so far apart that
all computation must be in log space. They compute in float64. Results have the dtype of the potentials, float32 or
float64, except log-partitions, which are float64. Leading axes are batch axes.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.kernels import native

Marginals = tuple[Tensor, Tensor]


def chain_marginals(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor] | None:
    """Log-partition (*batch,), marginals of states and of transitions, in the shapes of the potentials."""
    if not _can_chain(unary, transitions):
        return None
    call = _chain(unary, transitions, mask)
    log_partition, states, edges = _empty(unary.shape[:-2]), _like(unary), _like(transitions)
    done = call("chain_marginals", [], [log_partition, states, edges])
    return (log_partition, states, edges) if done else None


def chain_derivative(
    unary: Tensor, transitions: Tensor, mask: Tensor | None, direction: Tensor | None, turn: Tensor | None
) -> Marginals | None:
    """The derivative of the marginals when unary and transitions change by `direction` and `turn`; None for zero."""
    if not _can_chain(unary, transitions):
        return None
    call = _chain(unary, transitions, mask)
    states, edges = _like(unary), _like(transitions)
    direction = torch.zeros_like(unary) if direction is None else direction
    directions = [direction.contiguous(), None if turn is None else turn.contiguous()]
    done = call("chain_derivative", directions, [states, edges])
    return (states, edges) if done else None


def _can_chain(unary: Tensor, transitions: Tensor) -> bool:
    same = unary.dtype == transitions.dtype and transitions.shape[-3] in (1, max(unary.shape[-2] - 1, 0))
    return same and unary.shape[-1] > 0 and native.usable(unary, transitions)


def _chain(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> Any:
    """Calls a chain kernel. Transitions have all batch axes, but shared ones are not copied."""
    length, states = unary.shape[-2:]
    shared = transitions.shape[-3] == 1
    one_row = transitions[(0,) * (transitions.dim() - 3)] if 0 not in transitions.shape else transitions
    batch = zip(transitions.stride()[:-3], transitions.shape[:-3], strict=True)
    same_rows = all(stride == 0 or size == 1 for stride, size in batch)
    given = (one_row if same_rows else transitions).contiguous()
    row_stride = 0 if same_rows else transitions.shape[-3] * states * states
    rows = math.prod(unary.shape[:-2])

    def call(name: str, directions: Sequence[Tensor | None], results: Sequence[Tensor]) -> bool:
        return _run(
            name,
            [unary.contiguous(), given, _bytes(mask, unary.shape[:-1]), *directions, *results],
            [_is_float(unary), length, states, row_stride, 0 if shared else states * states],
            rows,
            rows * length * (states + 4) * (states + 4) / 2,
        )

    return call


def tree_marginals(arcs: Tensor, present: Tensor | None, projective: bool, single_root: bool) -> Marginals | None:
    """Log-partition (*batch,) and marginals of arcs (*batch, n, n)."""
    if not native.usable(arcs):
        return None
    log_partition, marginals = _empty(arcs.shape[:-2]), _like(arcs)
    done = _tree("marginals", arcs, present, projective, single_root, [log_partition, marginals])
    return (log_partition, marginals) if done else None


def tree_derivative(
    arcs: Tensor, present: Tensor | None, projective: bool, single_root: bool, marginals: Tensor, direction: Tensor
) -> Tensor | None:
    """The derivative of the marginals when the arcs change by `direction`."""
    if not native.usable(arcs):
        return None
    change = _like(arcs)
    known = [] if projective else [marginals.contiguous()]
    done = _tree("derivative", arcs, present, projective, single_root, [*known, direction.contiguous(), change])
    return change if done else None


def _tree(
    what: str, arcs: Tensor, present: Tensor | None, projective: bool, single_root: bool, tensors: Sequence[Tensor]
) -> bool:
    size, rows = arcs.shape[-1], math.prod(arcs.shape[:-2])
    return _run(
        f"projective_{what}" if projective else f"non_projective_{what}",
        [arcs.contiguous(), _bytes(present, arcs.shape[:-1]), *tensors],
        [_is_float(arcs), size, int(single_root)],
        rows,
        rows * size**3 / (1 if projective else 20),  # products only, no exponentials
    )


def monotonic_marginals(unary: Tensor, steps: Tensor | None, last: Tensor | None) -> Marginals | None:
    """Log-partition (*batch,) and marginals (*batch, T, S) of alignments that never move back."""
    if not native.usable(unary):
        return None
    rows = math.prod(unary.shape[:-2])
    log_partition, marginals = _empty(unary.shape[:-2]), _empty(unary.shape)
    ends = None if last is None else last.to(torch.int64).expand(unary.shape[:-2]).contiguous()
    tensors = [unary.double().contiguous(), _bytes(steps, unary.shape[:-1]), ends, log_partition, marginals]
    done = _run("monotonic_marginals", tensors, list(unary.shape[-2:]), rows, 20 * unary.numel())
    return (log_partition, marginals.to(unary.dtype)) if done else None


def _like(tensor: Tensor) -> Tensor:
    """An empty contiguous tensor of the same shape."""
    return _empty(tensor.shape, tensor.dtype)


def _empty(shape: Sequence[int], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="cpu")


def _is_float(tensor: Tensor) -> int:
    return int(tensor.dtype == torch.float32)


def _bytes(mask: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    return None if mask is None else mask.expand(shape).contiguous()


def _run(name: str, tensors: Sequence[Tensor | None], numbers: Sequence[int], rows: int, operations: float) -> bool:
    if rows == 0:
        return True
    kernel = native.function(name, torch.float64)
    failures = native.run(kernel, *tensors, *numbers, items=rows, operations=operations)
    if min(failures) < 0:
        raise MemoryError(f"out of memory for {name}.")
    return bool(max(failures) == 0)
