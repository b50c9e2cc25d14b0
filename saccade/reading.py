"""Reading: what attention returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from saccade.distributions import Distribution
from saccade.kernels.nested import map_tensors


class State(NamedTuple):
    """The state that attention keeps between steps: that of the score and that of the selection."""

    score: Any = None
    selection: Any = None

    def index(self, rows: Tensor) -> State:  # type: ignore[override]
        """Selects rows of the first batch dimension, for beam search, like `Memory.index`."""
        chosen: State = map_tensors(lambda part: part[rows], self)
        return chosen


class Deferred(Protocol):
    """A selection that is computed on first access."""

    def compute(self) -> Distribution: ...


class Reading:
    """The result of reading: the context, the selection, and the state for the next step.

    When a fast path computes the context, the selection is computed on first access, with the parameters at that time:
    access it before an optimiser step changes them.
    """

    def __init__(
        self,
        context: Tensor,
        selection: Distribution | None = None,
        state: State | None = None,
        *,
        deferred: Deferred | None = None,
    ) -> None:
        self.context = context
        self.state = State() if state is None else state
        self._selection = selection
        self._deferred = deferred
        self._grad_enabled = torch.is_grad_enabled()

    @property
    def selection(self) -> Distribution:
        if self._selection is None:
            assert self._deferred is not None
            # Grad mode at the time of reading: access under no_grad must not remove the gradient for later accesses.
            with torch.set_grad_enabled(self._grad_enabled):
                self._selection = self._deferred.compute()
        return self._selection

    @property
    def weights(self) -> Tensor:
        """The attention weights before dropout, (*batch, queries, keys): `selection.marginals`."""
        return self.selection.marginals

    def with_context(self, context: Tensor) -> Reading:
        """The same reading with another context, for projections of the context."""
        reading = Reading(context, self._selection, self.state, deferred=self._deferred)
        reading._grad_enabled = self._grad_enabled
        return reading

    def __iter__(self) -> Iterator[Any]:
        return iter((self.context, self.selection, self.state))

    def __repr__(self) -> str:
        selection = "not computed yet" if self._selection is None else type(self._selection).__name__
        return f"Reading(context={tuple(self.context.shape)}, selection={selection})"
