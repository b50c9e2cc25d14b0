"""What was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from saccade.interpretation.recording.graphs import Edges
from saccade.interpretation.recording.joining import Rows, join
from saccade.interpretation.recording.keeping import Kept, weights_of
from saccade.interpretation.recording.naming import Place, kind_of, path_of
from saccade.interpretation.recording.recipes import Recipe, Shape

if TYPE_CHECKING:
    from saccade.interpretation.explorer import Axis, Measure


Step = tuple[str, Recipe, Kept]
"""The name of a call and what is kept of it; a list of all calls of a module does not refer to itself, so that it goes
at once."""


class Recorded:
    """One call of attention.

    Args:
        name: the path of the module, with `#1`, `#2`, ... from its second call on.
        path: without the number.
    """

    def __init__(self, name: str, path: str, recipe: Recipe, kept: Kept, steps: list[Step]) -> None:
        self.name = name
        self.path = path
        self.kept = kept
        self._recipe = recipe
        self._steps = steps

    @property
    def weights(self) -> Tensor:
        """(batch, heads, queries, keys), before dropout; computed at every look, and without gradients."""
        return weights_of(self._recipe, self.kept.load(self.name))

    @property
    def shape(self) -> Shape:
        """(batch, heads, queries, keys), without computing the weights where that is possible."""
        if self.kept.shape is None:
            self.kept.shape = self._recipe.shape(self.kept.load(self.name))
        return self.kept.shape

    @property
    def heads(self) -> int:
        """How many heads were kept; one for attention without heads."""
        return self.shape[1]

    @property
    def kind(self) -> str | None:
        """ "self" or "cross" if the path of the module tells."""
        return kind_of(self.path)

    @property
    def edges(self) -> tuple[Tensor, Tensor]:
        """Of a graph layer: its edges (2, edges), first where they come from, and their weights (edges, heads)."""
        if not isinstance(self._recipe, Edges):
            raise ValueError(f"{self.name!r} is not attention along the edges of a graph: read its weights.")
        tensors = self.kept.load(self.name)
        return torch.stack([tensors["sources"], tensors["targets"]]), tensors["weights"]

    def joined(self, rows: Rows | None = None) -> Tensor:
        """All calls of the same module as one, see `Trace.joined`."""
        return join(self.path, [weights_of(recipe, kept.load(name)) for name, recipe, kept in self._steps], rows)

    def __repr__(self) -> str:
        return f"Recorded({self.name!r}, {type(self._recipe).__name__})"


class Trace(Mapping[str, Recorded]):
    """The calls of attention in their order, by name.

    A name need not be complete: a part of a path or a pattern will do (`trace["layer.3.attention"]`), if it fits one
    module only; then its first call is meant.

    Attributes:
        noted: place, recipe and tensors of each call, which gets its name when the trace is looked at.
    """

    def __init__(self) -> None:
        self.noted: list[tuple[Place, Recipe, Kept]] = []
        self._names: dict[str, Recorded] = {}
        self._modules: dict[str, list[Recorded]] = {}
        self._steps: dict[str, list[Step]] = {}
        self._left_out: set[str] = set()

    @property
    def _by_name(self) -> dict[str, Recorded]:
        for place, recipe, kept in self.noted[len(self._names) :]:
            path = path_of(place)
            steps = self._steps.setdefault(path, [])
            name = f"{path}#{len(steps)}" if steps else path
            steps.append((name, recipe, kept))
            self._names[name] = Recorded(name, path, recipe, kept, steps)
            self._modules.setdefault(path, []).append(self._names[name])
        return self._names

    @property
    def _by_path(self) -> dict[str, list[Recorded]]:
        return self._modules if self._by_name else {}

    @property
    def calls(self) -> list[Recorded]:
        """All calls in their order."""
        return list(self._by_name.values())

    def __getitem__(self, name: str) -> Recorded:
        if name in self._by_name:
            return self._names[name]
        path, _, number = name.partition("#")
        return self._find(path, int(number) if number.isdecimal() else 0, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.noted)

    def __contains__(self, name: object) -> bool:
        """Whether `trace[name]` finds a call."""
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False

    @property
    def paths(self) -> list[str]:
        """The modules that attended, in the order of their first calls."""
        return list(self._by_path)

    def find(self, pattern: str) -> list[Recorded]:
        """All calls of the modules that fit a part of a path or a pattern."""
        return [call for call in self.calls if matches(call.path, pattern)]

    def joined(self, name: str, rows: Rows | None = None) -> Tensor:
        """The calls of one module as one matrix: the steps of a decoder under each other.

        Steps that had fewer keys are filled up with zeros.

        Args:
            name: of the module, as for `trace[name]`.
            rows: the row of the batch that each hypothesis had at each call, (hypotheses, calls), negative after its
                end: `beam_indices` of Hugging Face's `generate`, or `rows` of the hypotheses of `saccade.search`.
                Without it the rows of the batch are taken as they are.

        Shapes:
            -> (batch, heads, steps, keys); with `rows`, (hypotheses, heads, steps, keys).
        """
        return self[name].joined(rows)

    def explore(
        self,
        path: str | os.PathLike[str],
        *,
        queries: Axis | Sequence[str] | None = None,
        keys: Axis | Sequence[str] | None = None,
        row: int = 0,
        rows: Rows | None = None,
        keep: str = "*",
        title: str = "Attention",
        measures: Sequence[Measure] = (),
    ) -> None:
        """Writes a page that shows the recorded attention of one row of the batch; it opens without a network.

        Args:
            path: of the HTML file.
            queries: names of the queries, or an axis of the explorer; numbers by default.
            keys: names of the keys; those of the queries, if they are as many.
            row: which of the batch.
            rows: as for `joined`; `row` then counts the hypotheses.
            keep: a pattern of the modules to show; those whose sizes do not fit the names are left out.
            title: of the page.
            measures: figures to show beside it.
        """
        from saccade.interpretation.recording.exploring import write_trace

        write_trace(
            self, path, queries=queries, keys=keys, row=row, rows=rows, keep=keep, title=title, measures=measures
        )

    def leave_out(self, path: str) -> None:
        """Remembers a module whose calls were not to be kept, to name it in errors."""
        self._left_out.add(path)

    def why_empty(self) -> str:
        """The reason why there are no calls, for errors."""
        if self._left_out:
            return f"Nothing was kept: keep= fits none of {', '.join(sorted(self._left_out))}."
        return (
            "No attention was recorded: the model did not run in the block and in its thread, or it attends by other "
            "means than those that saccade.record sees."
        )

    def _find(self, path: str, number: int, asked: str) -> Recorded:
        found = [name for name in self._by_path if matches(name, path)]
        ending = [name for name in found if f".{name}".endswith(f".{path}")]
        if len(ending) == 1:
            found = ending
        if len(found) == 1 and number < len(self._by_path[found[0]]):
            return self._by_path[found[0]][number]
        raise KeyError(_nothing_found(asked, found, self._by_path) if self._by_path else self.why_empty())

    def __repr__(self) -> str:
        return f"Trace({len(self)} calls of {len(self._by_path)} modules: {', '.join(self._by_path)})"


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern fits a path, or whole parts of it in a row."""
    return fnmatchcase(path, pattern) or fnmatchcase(f".{path}.", f"*.{pattern}.*")


def _nothing_found(asked: str, found: list[str], by_path: Mapping[str, Any]) -> str:
    if len(found) > 1:
        return f"{asked!r} fits {len(found)} modules: {', '.join(found)}."
    if found:
        return f"{asked!r}: {found[0]!r} was called {len(by_path[found[0]])} times."
    return f"No attention was recorded under {asked!r}; recorded were: {', '.join(by_path)}."
