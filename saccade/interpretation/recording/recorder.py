"""record: the attention of a model, without a change to its code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from saccade.interpretation.recording.changes import Changes, Intervention
from saccade.interpretation.recording.function_mode import RecordingMode
from saccade.interpretation.recording.graphs import edge_softmax
from saccade.interpretation.recording.naming import Names, Place, path_of
from saccade.interpretation.recording.patches import patches
from saccade.interpretation.recording.readings import attended_by
from saccade.interpretation.recording.recipes import Captured, Change
from saccade.interpretation.recording.retention import Kept, Reduction, Retention, storage_of
from saccade.interpretation.recording.runs import Runs
from saccade.interpretation.recording.softmaxes import Softmaxes
from saccade.interpretation.recording.trace import Trace, matches
from saccade.kernels.private_torch import in_backward, inside_transform, without_function_modes
from saccade.reading import Reading


def record(
    model: nn.Module,
    *,
    keep: str | Sequence[str] = "*",
    change: Mapping[str, Intervention] | None = None,
    heads: Sequence[int] | None = None,
    reduce: Reduction = None,
    dtype: torch.dtype | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Recorder:
    """Records the attention of a model, and changes it on request: `with record(model) as trace: model(...)`.

    Without `change` the model computes exactly what it computes otherwise, by the same kernels. The trace keeps
    references to the queries, keys and mask of each call, and computes the weights when they are read. It sees
    `F.scaled_dot_product_attention`, `nn.MultiheadAttention` and the layers built on it, FlexAttention, a softmax whose
    result is multiplied by values, the edge softmax of PyTorch Geometric, and Saccade's attention. It does not see
    kernels outside PyTorch, functions captured earlier (`functools.partial`), or other normalisations than softmax that
    a model computes itself.

    It records what runs inside the model and in this thread. Compiled models run uncompiled. What a backward pass
    computes again (checkpointing) is not recorded twice.

    Args:
        model: the model; its modules name the calls.
        keep: the modules to keep, by path, part of a path, or pattern (`"encoder.*"`).
        change: interventions: for a path, part of a path or pattern, a function `(weights, mask, steps) -> weights`,
            such as those of `saccade.interpretation.interventions`. The model continues with the weights it returns,
            and the trace holds these.
        heads: the numbers of the heads to keep.
        reduce: "mean" or "max" over the heads, or ("top_k", k) for the k largest weights of each query; these are
            computed immediately, in blocks.
        dtype: the dtype in which queries and keys, or reduced weights, are kept, such as torch.float16.
        spill: an empty folder to write everything to that is kept, immediately.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"record takes an nn.Module, got {type(model).__name__}.")
    retention = Retention(heads=heads, reduce=reduce, dtype=dtype, spill=None if spill is None else Path(spill))
    return Recorder(model, [keep] if isinstance(keep, str) else list(keep), retention, Changes(change or {}))


class Recorder:
    """The context manager that `record` returns."""

    def __init__(self, model: nn.Module, patterns: Sequence[str], retention: Retention, changes: Changes) -> None:
        self._names = Names(model)
        self._root = type(model).__name__
        self._patterns = patterns
        self._keep_all = "*" in patterns
        self._retention = retention
        self._changes = changes
        self.changes = bool(changes)
        self._softmaxes = Softmaxes()
        self.trace = Trace()
        self._kept_in: dict[int, list[Kept]] = {}
        self._indexed = 0
        self._seen = 0
        self._entered = False

    def __enter__(self) -> Trace:
        if self._entered:
            raise RuntimeError("A recording can be entered only once: call record(model) again.")
        self._entered = True
        self._runs = Runs(self._names, sys._getframe(1))
        self._mode = RecordingMode(
            softmaxes=self._softmaxes,
            written=self._secure,
            attended=self._completed,
            change_at=self.change_at if self.changes else None,
        )
        patches.start(self, map(vars, self._names.modules), self._names.code)
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._mode.stop()
        patches.stop(self)
        self._softmaxes.followed.clear()
        # They refer to the recording and to frames: the last reference to the trace should free what is kept.
        del self._mode, self._runs
        if error is None:
            self._changes.check_used()

    def change_at(self, frame: FrameType) -> Change | None:
        """The change of attention that is called in this frame, if there is one."""
        if not self.changes:
            return None
        place = self._names.place(frame)
        if place is None:
            return None
        change = self._changes.of(self._path(place))
        return None if change is None else partial(self._muted, change)

    def _muted(self, change: Change, weights: Tensor, mask: Tensor) -> Tensor:
        with patches.calls.muted():
            return change(weights, mask)

    def attended(self, attend: Callable[[], Captured], frame: FrameType, suffix: str = "") -> None:
        """Keeps attention that was called in this frame, if the model called it."""
        place = self._names.place(frame)
        if place is None or in_backward():
            return
        self._seen += 1
        place = (place, suffix) if suffix else place or ((), self._root)
        if not self._keep_all and not any(matches(path_of(place), pattern) for pattern in self._patterns):
            self.trace.leave_out(path_of(place))
            return
        with without_function_modes():
            attended = attend()
            for part, tensor in attended.tensors.items():
                if inside_transform(tensor):
                    raise NotImplementedError(
                        f"{part} of {path_of(place)!r} is inside torch.func: record outside of it."
                    )
            recipe, kept = self._retention.keep(attended, place)
        kept.run = self._runs.number(frame)
        self.trace.noted.append((place, recipe, kept))
        if kept.may_change:
            self._mode.start()

    def _path(self, place: Place) -> str:
        return path_of(place) or self._root

    def _completed(self, attend: Callable[[], Captured], frame: FrameType) -> None:
        with patches.calls.muted():
            self.attended(attend, frame)

    def softmax(self, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        """Follows a softmax, which may become attention."""
        inside = self._mode.started or self._names.place(frame) is not None
        if inside and self._softmaxes.begin(args, kwargs, result):
            self._mode.start()

    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType) -> None:
        """Keeps a softmax over the edges of a graph."""
        self.attended(lambda: edge_softmax(weights, index, num_nodes, dim, self._names.forward(frame)), frame)

    def read(self, reader: Callable[[], Reading]) -> Reading:
        """Keeps a reading of Saccade's attention. Its softmax does not count again; a fused kernel is kept instead."""
        seen = self._seen
        self._softmaxes.paused += 1
        try:
            reading = reader()
        finally:
            self._softmaxes.paused -= 1
        if self._seen == seen:
            self._completed(lambda: attended_by(reading), sys._getframe(1))
        return reading

    def _secure(self, written: Any) -> None:
        """Copies kept tensors that are about to be overwritten, such as a decoder's cache."""
        for _, _, kept in self.trace.noted[self._indexed :]:
            for tensor in kept.tensors.values():
                self._kept_in.setdefault(storage_of(tensor), []).append(kept)
        self._indexed = len(self.trace.noted)
        if not self._kept_in:
            return
        copies: dict[Any, Tensor] = {}
        for tensor in written if isinstance(written, list | tuple) else [written]:
            if isinstance(tensor, Tensor) and tensor.layout == torch.strided:
                storage = storage_of(tensor)
                for kept in self._kept_in.pop(storage, ()):
                    kept.secure(storage, copies)
