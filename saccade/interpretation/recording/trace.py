"""A trace: the recorded calls of attention."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from saccade.interpretation.recording.blocks import weights_of
from saccade.interpretation.recording.files import Folder, read_index
from saccade.interpretation.recording.graphs import Edges
from saccade.interpretation.recording.joining import Rows, join
from saccade.interpretation.recording.kept import Kept
from saccade.interpretation.recording.missing import Missing
from saccade.interpretation.recording.naming import Place, kind_of, path_of
from saccade.interpretation.recording.recipes import Given, Shape, Top

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from saccade.interpretation.explorer import Axis, Measure


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
        """The positions of the keys in their sequence: a cache with a window holds only the last ones."""
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
        calls = [kept.run for _, kept in self._steps]
        runs = list(dict.fromkeys(calls))
        if run is not None and not 0 <= run < len(runs):
            raise ValueError(f"run={run}, but {self.path!r} has {len(runs)} runs, counted from 0.")
        if run is None and 1 < len(runs) < len(calls):
            raise ValueError(
                f"The {len(calls)} calls of {self.path!r} come from {len(runs)} runs of the model, such as several "
                "calls of generate: choose one with joined(name, run=0), or take one of trace.runs."
            )
        steps = [(name, kept) for name, kept in self._steps if run is None or kept.run == runs[run]]
        weights = [weights_of(kept.recipe, kept.load(name)) for name, kept in steps]
        return join(self.path, weights, [kept.positions for _, kept in steps], rows)

    def __repr__(self) -> str:
        return f"Recorded({self.name!r}, {type(self.kept.recipe).__name__})"


class Trace(Mapping[str, Recorded]):
    """The calls of attention by name, in order.

    A part of a path or a pattern will do as a name (`trace["layer.3.attention"]`) if it matches a single module; it
    stands for the module's first call.

    Attributes:
        missing: modules that look like attention, ran, and were not recorded, with the reason.
        left_out: the paths of the modules that `keep` excludes.
        noted: the place of each call and what is kept of it; names are assigned when the trace is read.
    """

    def __init__(self) -> None:
        self.noted: list[tuple[Place, Kept]] = []
        self._names: dict[str, Recorded] = {}
        self._modules: dict[str, list[Recorded]] = {}
        self._steps: dict[str, list[Step]] = {}
        self.left_out: set[str] = set()
        self.missing: list[Missing] = []

    def forget_names(self) -> None:
        """Assigns names anew when the trace is read again, after calls have been taken out."""
        self._names, self._modules, self._steps = {}, {}, {}

    @property
    def _by_name(self) -> dict[str, Recorded]:
        for place, kept in self.noted[len(self._names) :]:
            path = path_of(place)
            steps = self._steps.setdefault(path, [])
            name = f"{path}#{len(steps)}" if steps else path
            steps.append((name, kept))
            self._names[name] = Recorded(name, path, kept, steps)
            self._modules.setdefault(path, []).append(self._names[name])
        return self._names

    @property
    def _by_path(self) -> dict[str, list[Recorded]]:
        return self._modules if self._by_name else {}

    @property
    def calls(self) -> list[Recorded]:
        """All calls in order."""
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
        """The paths of the modules that attended, in the order of their first calls."""
        return list(self._by_path)

    @property
    def runs(self) -> list[Trace]:
        """The runs of the model, such as calls of `generate`, each as a trace of its own."""
        runs: dict[int, Trace] = {}
        for place, kept in self.noted:
            runs.setdefault(kept.run, Trace()).noted.append((place, kept))
        for run in runs.values():
            run.missing, run.left_out = self.missing, self.left_out
        return list(runs.values())

    def find(self, pattern: str) -> list[Recorded]:
        """All calls of the modules that match a part of a path or a pattern."""
        return [call for call in self.calls if matches(call.path, pattern)]

    def joined(self, name: str, rows: Rows | None = None, *, run: int | None = None) -> Tensor:
        """The calls of one module as one matrix, with the steps of a decoder as its rows.

        Keys stand at their positions, also those of a cache that has dropped older ones; what a step does not attend is
        zero. A query that is computed again, as in assisted generation, replaces the earlier one.

        Args:
            name: the module, as for `trace[name]`.
            rows: (hypotheses, calls), the batch row of each hypothesis at each call, negative after its end:
                `beam_indices` of Hugging Face's `generate`, or `rows` of the hypotheses of `saccade.search`. By
                default, batch rows do not move.
            run: which run of the model, if several runs made several calls each: `generate` called twice, for example.

        Shapes:
            -> (batch, heads, steps, keys); with `rows`, (hypotheses, heads, steps, keys).
        """
        return self[name].joined(rows, run=run)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the trace to an empty folder, from which `Trace.load` reads it: trace.json and safetensors files."""
        target = Folder(Path(folder), "folder")
        written = []
        for call, (place, kept) in zip(self.calls, self.noted, strict=True):
            recipe, files = target.write(kept.recipe, kept.load(call.name))
            copy = Kept(recipe, {})
            copy.spill(files)
            copy.run, copy.positions = kept.run, kept.positions
            written.append((place, copy))
        target.finish(written, self.missing)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Trace:
        """The trace that `save`, or a recording with `spill=folder`, wrote; tensors are read when they are used."""
        trace = cls()
        trace.noted, trace.missing = read_index(Path(folder))
        return trace

    def to_frame(self, keep: str = "*", *, least: float = 0.0) -> pandas.DataFrame:
        """The weights as a table of pandas, a row for each weight above `least`.

        Args:
            keep: a pattern of the modules to take.
            least: smaller weights, and this one, are left out.

        Returns:
            Columns call, path, run, batch, head, query, key, weight; queries and keys are positions.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "to_frame needs the library 'pandas': pip install pandas", name="pandas"
            ) from None
        columns = ["call", "path", "run", "batch", "head", "query", "key", "weight"]
        parts = []
        for call in self.find(keep):
            weights = call.weights.float().cpu()
            batch, head, query, key = (weights > least).nonzero(as_tuple=True)
            first = call.kept.positions.query or 0
            values = (batch, head, query + first, key + call.kept.positions.key, weights[batch, head, query, key])
            part = pandas.DataFrame(dict(zip(columns[3:], (each.numpy() for each in values), strict=True)))
            parts.append(part.assign(call=call.name, path=call.path, run=call.run)[columns])
        return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame(columns=columns)

    def explore(
        self,
        path: str | os.PathLike[str],
        *,
        queries: Axis | Sequence[str] | None = None,
        keys: Axis | Sequence[str] | None = None,
        tokenizer: Any = None,
        inputs: Any = None,
        generated: Any = None,
        rate: int = 16_000,
        row: int = 0,
        rows: Rows | None = None,
        run: int | None = None,
        keep: str = "*",
        title: str = "Attention",
        measures: Sequence[Measure] = (),
    ) -> None:
        """Writes an HTML page of the recorded attention of one batch row, which needs no network.

        Give `inputs` and, if the model wrote something, `generated`: the page then finds the row of every call that
        belongs together, and names its queries and keys. The page says what it leaves out.

        Args:
            path: the HTML file to write.
            queries: instead of `inputs`: the names of the queries, or an axis of the explorer; numbers by default.
            keys: the names of the keys; by default those of the queries, if there are as many.
            tokenizer: a Hugging Face tokeniser or processor, for the names of tokens.
            inputs: what the model was given: the output of a tokeniser or processor, token numbers (batch, tokens), a
                PIL image, pixels (batch, channels, lines, columns), or the samples of a recording.
            generated: what `generate` of Hugging Face returned; with `return_dict_in_generate=True` for beam search.
            rate: samples a second, of a recording.
            row: the batch row to show; with `generated`, the number of a sequence.
            rows: as for `joined`; `row` is then the number of a hypothesis.
            run: which run of the model, as for `joined`.
            keep: a pattern of the modules to show; modules whose sizes do not fit the names are left out.
            title: the title of the page.
            measures: figures to show next to it.
        """
        from saccade.interpretation.recording.page import write_trace

        write_trace(
            self,
            path,
            queries=queries,
            keys=keys,
            tokenizer=tokenizer,
            inputs=inputs,
            generated=generated,
            rate=rate,
            row=row,
            rows=rows,
            run=run,
            keep=keep,
            title=title,
            measures=measures,
        )

    def why_empty(self) -> str:
        """Why there are no calls, for error messages."""
        if self.left_out:
            return f"Nothing was kept: keep= matches none of {', '.join(sorted(self.left_out))}."
        if self.missing:
            return f"No attention was recorded: {'; '.join(f'{path}: {reason}' for path, reason in self.missing)}."
        return (
            "No attention was recorded: the model did not run inside the block and in its thread, or it attends in a "
            "way that saccade.record does not see."
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
    """Whether a pattern matches a path, or some consecutive parts of it."""
    return fnmatchcase(path, pattern) or fnmatchcase(f".{path}.", f"*.{pattern}.*")


def _nothing_found(asked: str, found: list[str], by_path: Mapping[str, Any]) -> str:
    if len(found) > 1:
        return f"{asked!r} matches {len(found)} modules: {', '.join(found)}."
    if found:
        return f"{asked!r} does not exist: {found[0]!r} was called {len(by_path[found[0]])} times."
    return f"No attention was recorded under {asked!r}, only under {', '.join(by_path)}."
