"""One recorded call of attention."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.interpretation.recording.blocks import weights_of
from saccade.interpretation.recording.graphs import Edges
from saccade.interpretation.recording.joining import Rows, join, join_top
from saccade.interpretation.recording.kept import Kept
from saccade.interpretation.recording.naming import kind_of
from saccade.interpretation.recording.recipes import Given, Shape, Top

Step = tuple[str, Kept]
"""The name of a call and what is kept of it. Unlike `Recorded` it does not refer to the list that holds it, so that
memory is freed without waiting for the garbage collector."""


class Recorded:
    """One call of attention.

    Args:
        name: the path of the module; its second call is `path#1`, its third `path#2`, and so on.
        path: the path without the number.
    """

    def __init__(self, name: str, path: str, kept: Kept, steps: list[Step]) -> None:
        self.name = name
        self.path = path
        self.kept = kept
        self._steps = steps

    @property
    def weights(self) -> Tensor:
        """(batch, heads, queries, keys), before dropout and without gradients; computed at every access."""
        return weights_of(self.kept.recipe, self.kept.load(self.name))

    @property
    def top(self) -> tuple[Tensor, Tensor] | None:
        """With `reduce=("top_k", k)`, the weights that were kept and their keys, (batch, heads, queries, k) each.

        None where all weights are known.
        """
        if not isinstance(self.kept.recipe, Top):
            return None
        tensors = self.kept.load(self.name)
        return tensors["values"], tensors["places"]

    @property
    def picked(self) -> Tensor | None:
        """(batch, heads, queries, keys): what hard attention drew from its weights and read.

        None for attention that reads an expectation, for other libraries', and where heads were chosen or reduced.
        """
        drawn = self.kept.load(self.name).get("picked")
        return None if drawn is None else Given().compute({"weights": drawn}, slice(None))

    @property
    def shape(self) -> Shape:
        """(batch, heads, queries, keys), without computing the weights where possible."""
        if self.kept.shape is None:
            self.kept.shape = self.kept.recipe.shape(self.kept.load(self.name))
        return self.kept.shape

    @property
    def key_positions(self) -> range:
        """The positions of the keys in their sequence: a sliding-window cache only has the last ones."""
        first = self.kept.positions.key
        return range(first, first + self.shape[3])

    @property
    def query_positions(self) -> range | None:
        """The positions of the queries in their sequence; None where they follow those of the call before."""
        first = self.kept.positions.query
        return None if first is None else range(first, first + self.shape[2])

    @property
    def run(self) -> int:
        """The number of the run of the model that made the call: see `Trace.runs`."""
        return self.kept.run

    @property
    def heads(self) -> int:
        """The number of heads kept; 1 for attention without heads."""
        return self.shape[1]

    @property
    def kind(self) -> str | None:
        """ "self" or "cross", if the path of the module says so."""
        return kind_of(self.path)

    @property
    def edges(self) -> tuple[Tensor, Tensor]:
        """The edges of a graph layer (2, edges), sources first, and their weights (edges, heads)."""
        if not isinstance(self.kept.recipe, Edges):
            raise ValueError(f"{self.name!r} is not attention along the edges of a graph: use .weights.")
        tensors = self.kept.load(self.name)
        return torch.stack([tensors["sources"], tensors["targets"]]), tensors["weights"]

    def joined(self, rows: Rows | None = None, *, run: int | None = None) -> Tensor:
        """The calls of the module as one matrix, see `Trace.joined`."""
        steps = self._of_run(run)
        weights = [weights_of(kept.recipe, kept.load(name)) for name, kept in steps]
        return join(self.path, weights, [kept.positions for _, kept in steps], rows)

    def joined_top(self, rows: Rows | None = None, *, run: int | None = None) -> tuple[Tensor, Tensor, int] | None:
        """The same with `reduce=("top_k", k)`: weights and their keys (batch, heads, steps, k), and the count of keys.

        None where all weights are known.
        """
        steps = self._of_run(run)
        parts = []
        for name, kept in steps:
            if not isinstance(kept.recipe, Top):
                return None
            tensors = kept.load(name)
            parts.append((tensors["values"], tensors["places"], kept.recipe.keys))
        return join_top(self.path, parts, [kept.positions for _, kept in steps], rows)

    def _of_run(self, run: int | None) -> list[Step]:
        calls = [kept.run for _, kept in self._steps]
        runs = list(dict.fromkeys(calls))
        if run is not None and not 0 <= run < len(runs):
            raise ValueError(f"run={run}, but {self.path!r} has {len(runs)} runs, counted from 0.")
        if run is None and 1 < len(runs) < len(calls):
            raise ValueError(
                f"The {len(calls)} calls of {self.path!r} come from {len(runs)} runs of the model, such as several "
                "calls of generate: choose one with joined(name, run=0), or take one of trace.runs."
            )
        return [(name, kept) for name, kept in self._steps if run is None or kept.run == runs[run]]

    def __repr__(self) -> str:
        return f"Recorded({self.name!r}, {type(self.kept.recipe).__name__})"
