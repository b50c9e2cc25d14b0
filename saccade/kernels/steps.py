"""Loops over steps, in a form that an exported program keeps for any number of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from saccade.kernels.private_torch import scan

State = tuple[Tensor, ...]


def over_steps(step: Callable[[Any, State], State], state: State, inputs: Any) -> State:
    """The states after each step, stacked; only for torch.export, where a Python loop would be unrolled.

    Args:
        step: the state after one step, given its inputs and the state before it.
        state: before the first step.
        inputs: tensors (steps, ...), nested in any way; a step gets one row of each.
    """

    def body(before: State, row: Any) -> tuple[State, State]:
        after = step(row, before)
        return after, tuple(tensor.clone() for tensor in after)  # nothing may share memory

    states: State = scan(body, tuple(tensor.clone() for tensor in state), inputs)[1]
    return states
