"""Loops over steps, in a form that an exported program keeps for any number of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor

from saccade.kernels.private_torch import scan

Carried = tuple[Tensor, ...]

unpatched: Callable[[], AbstractContextManager[None]] = nullcontext
"""Entered while the compiler traces the body of a loop. `record`, which replaces functions, lifts its replacements."""


def over_steps(step: Callable[[Any, Carried], Carried], state: Carried, inputs: Any) -> Carried:
    """The states after each step, stacked; only for torch.export, where a Python loop would be unrolled.

    Args:
        step: the state after one step, given its inputs and the state before it.
        state: before the first step.
        inputs: tensors (steps, ...), nested in any way; a step gets one row of each.
    """

    def both(row: Any, before: Carried) -> tuple[Carried, Carried]:
        after = step(row, before)
        return after, after

    return outputs_of_steps(both, state, inputs)


def outputs_of_steps(step: Callable[[Any, Carried], tuple[Carried, Carried]], state: Carried, inputs: Any) -> Carried:
    """What each step gives besides the next state, stacked: see `over_steps`."""

    def body(before: Carried, row: Any) -> tuple[Carried, Carried]:
        after, given = step(row, before)
        return tuple(t.clone() for t in after), tuple(t.clone() for t in given)  # nothing may share memory

    with unpatched():
        outputs: Carried = scan(body, tuple(tensor.clone() for tensor in state), inputs)[1]
    return outputs
