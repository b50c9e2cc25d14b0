"""A trace: the recorded calls of attention."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from saccade.interpretation.recording.backlog import Backlog
from saccade.interpretation.recording.files import Folder, Noted, read_index
from saccade.interpretation.recording.joining import Rows
from saccade.interpretation.recording.kept import PARAMETERS, Kept
from saccade.interpretation.recording.missing import Missing
from saccade.interpretation.recording.naming import ModelMemory
from saccade.interpretation.recording.patterns import find_path, matches
from saccade.interpretation.recording.recorded import Recorded, Step
from saccade.interpretation.recording.spare import large
from saccade.interpretation.recording.tables import to_frame

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from saccade.interpretation.explorer import Axis, Measure


LASTING = frozenset((*PARAMETERS, "mask", "padding"))
"""Parts that are usually not made anew for each call."""


class Trace(Mapping[str, Recorded]):
    """The calls of attention by name, in order.

    A part of a path or a pattern will do as a name (`trace["layer.3.attention"]`) if it matches a single module; it
    stands for the module's first call.

    Attributes:
        missing: modules that look like attention, ran, and were not recorded, with the reason.
        left_out: the paths of the modules that `keep` excludes.
        backlog: what remains to be worked out about calls when the trace is read.

    Args:
        noted: the calls.
        structure: of the model that is recorded, to which the trace leaves its memory.
    """

    def __init__(self, noted: Noted | None = None, *, structure: ModelMemory | None = None) -> None:
        self._noted: Noted = [] if noted is None else noted
        self._structure = structure
        self.backlog: Backlog | None = None
        self._names: dict[str, Recorded] = {}
        self._modules: dict[str, list[Recorded]] = {}
        self._steps: dict[str, list[Step]] = {}
        self.left_out: set[str] = set()
        self.missing: list[Missing] = []

    @property
    def noted(self) -> Noted:
        """The path of each call and what is kept of it, in order; names are assigned when the trace is read."""
        if self.backlog is not None and self.backlog.locate():
            self.backlog = None
        return self._noted

    @property
    def waiting(self) -> Noted:
        """The same, while positions may still be unknown."""
        if self.backlog is not None:
            self.backlog.gather()
        return self._noted

    def note(self, path: str, kept: Kept) -> None:
        """Adds a call."""
        self._noted.append((path, kept))

    def end(self, missing: list[Missing]) -> None:
        """Ends; names are assigned anew, since calls may have been taken out."""
        self.missing = missing
        self._names, self._modules, self._steps = {}, {}, {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_noted": self.noted, "backlog": None, "_structure": None}

    def __del__(self) -> None:
        if self._structure is not None:
            self._structure.spare = large(self._tensors())

    def _tensors(self) -> Iterator[Sequence[Tensor]]:
        """Those of each call in memory, but for masks and parameters."""
        for _, kept in self._noted:
            yield [tensor for part, tensor in kept.held() if part not in LASTING]
        if self.backlog is not None:
            yield from self.backlog.tensors()

    @property
    def _by_name(self) -> dict[str, Recorded]:
        for path, kept in self.noted[len(self._names) :]:
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
        if not self._modules:
            raise KeyError(self.why_empty())
        path, number = find_path(name, self._modules)
        return self._modules[path][number]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.waiting)

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
        for path, kept in self.noted:
            runs.setdefault(kept.run, Trace()).note(path, kept)
        for run in runs.values():
            run.missing, run.left_out = self.missing, self.left_out
        return list(runs.values())

    def find(self, pattern: str) -> list[Recorded]:
        """All calls of the modules that match a part of a path or a pattern."""
        return [call for call in self.calls if matches(call.path, pattern)]

    def joined(self, name: str, rows: Rows | None = None, *, run: int | None = None) -> Tensor:
        """The calls of one module as one matrix, with the steps of a decoder as its rows.

        Keys are placed at their positions, even if a cache has dropped older ones; keys that a step does not attend to
        are zero. A query that is computed again, as in assisted generation, replaces the earlier one.

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
        for call, (path, kept) in zip(self.calls, self.noted, strict=True):
            recipe, files = target.write(kept.recipe, kept.load(call.name))
            copy = Kept(recipe, {})
            copy.spill(files)
            copy.run, copy.positions = kept.run, kept.positions
            written.append((path, copy))
        target.finish(written, self.missing)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Trace:
        """The trace that `save`, or a recording with `spill=folder`, wrote; tensors are read when they are used."""
        noted, missing = read_index(Path(folder))
        trace = cls(noted)
        trace.missing = missing
        return trace

    def to_frame(self, keep: str = "*", *, least: float = 0.0) -> pandas.DataFrame:
        """The weights as a pandas DataFrame, with a row for each weight above `least`.

        Args:
            keep: a pattern of the modules to take.
            least: smaller weights, and this one, are left out.

        Returns:
            Columns call, path, run, batch, head, query, key, weight; queries and keys are positions.
        """
        return to_frame(self.find(keep), least)

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
        """Writes a self-contained HTML page with the recorded attention of one batch row.

        Pass `inputs` and, if the model wrote something, `generated`: the page then finds the matching row of every
        call, and names its queries and keys. The page says what it leaves out.

        Args:
            path: the HTML file to write.
            queries: instead of `inputs`: the names of the queries, or an axis of the explorer; numbers by default.
            keys: the names of the keys; by default those of the queries, if there are as many.
            tokenizer: a Hugging Face tokeniser or processor, for the names of tokens.
            inputs: what the model was given: the output of a tokeniser or processor, token numbers (batch, tokens), a
                PIL image, pixels (batch, channels, lines, columns), or the samples of a recording.
            generated: the result of Hugging Face's `generate`; with `return_dict_in_generate=True` for beam search.
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

    def __repr__(self) -> str:
        return f"Trace({len(self)} calls of {len(self._by_path)} modules: {', '.join(self._by_path)})"
