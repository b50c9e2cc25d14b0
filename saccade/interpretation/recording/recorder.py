"""record: the attention of a model, without changing its code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from saccade.interpretation.recording.backlog import Backlog
from saccade.interpretation.recording.changes import NO_CHANGES, Changes, Intervention
from saccade.interpretation.recording.function_mode import RecordingMode
from saccade.interpretation.recording.graphs import edge_softmax
from saccade.interpretation.recording.heads import OF_MODULES, Heads, NumHeads
from saccade.interpretation.recording.missing import Missing, Watch, warn
from saccade.interpretation.recording.naming import Names
from saccade.interpretation.recording.patches import patches
from saccade.interpretation.recording.patterns import matches
from saccade.interpretation.recording.positions import FOLLOWING, Positions
from saccade.interpretation.recording.readings import attended_by
from saccade.interpretation.recording.recipes import Captured, Change
from saccade.interpretation.recording.retention import Reduction, Retention
from saccade.interpretation.recording.runs import Runs
from saccade.interpretation.recording.softmaxes import Softmaxes
from saccade.interpretation.recording.threads import NONE, muted
from saccade.interpretation.recording.trace import Trace
from saccade.kernels.private_torch import (
    function_mode_count,
    function_modes,
    in_backward,
    inside_transform,
    transforming,
    without_function_modes,
)
from saccade.reading import Reading

NOT_FOLLOWED = ("transformers.generation.", "saccade.kernels.")
"""Code whose softmaxes are not followed.

Those of a generation choose tokens, and following them would slow down every function. Our own kernels serve attention
that is recorded as a whole.
"""
NO_LONGER_WATCHED = (
    "an inference mode that was entered before the recording ended inside it, and softmaxes after that were not seen"
)


def record(
    model: nn.Module,
    *,
    keep: str | Sequence[str] = "*",
    change: Mapping[str, Intervention] | None = None,
    heads: Sequence[int] | None = None,
    reduce: Reduction = None,
    dtype: torch.dtype | None = None,
    spill: str | os.PathLike[str] | None = None,
    num_heads: NumHeads = None,
) -> Recorder:
    """Records the attention of a model, and changes it on request: `with record(model) as trace: model(...)`.

    Without `change` the model computes exactly what it would otherwise, with the same kernels. The trace keeps
    references to the queries, keys and mask of each call, and computes the weights when they are read. It sees
    `F.scaled_dot_product_attention`, `nn.MultiheadAttention` and the layers built on it, FlexAttention, a softmax whose
    result is multiplied by values, the edge softmax of PyTorch Geometric, and Saccade's attention. It does not see
    kernels outside PyTorch, attention in blocks, or hand-written normalisations other than softmax: modules that look
    like attention and ran, but were not recorded, are in `trace.missing`, and a warning names them.

    It records what runs inside the model and in this thread. Compiled models run uncompiled. Calls that a backward pass
    recomputes (checkpointing) are not recorded twice.

    Args:
        model: the model; its modules name the calls.
        keep: the modules to keep, by path, part of a path, or pattern (`"encoder.*"`).
        change: interventions: for a path, part of a path or pattern, a function `(weights, mask, steps) -> weights`,
            such as those of `saccade.interpretation.recording`. The model continues with the weights it returns, and
            the trace records these.
        heads: the numbers of the heads to keep.
        reduce: "mean" or "max" over the heads, or ("top_k", k) for the k largest weights of each query; these are
            computed immediately, in blocks.
        dtype: the dtype in which queries and keys, or reduced weights, are kept, such as torch.float16.
        spill: an empty folder to which everything that is kept is written immediately.
        num_heads: for attention over (batch * heads, queries, keys), the number of heads, or numbers by path or
            pattern; by default read from the modules (`num_heads`, `heads`, ...).
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"record takes an nn.Module, got {type(model).__name__}.")
    retention = Retention(heads=heads, reduce=reduce, dtype=dtype, spill=None if spill is None else Path(spill))
    return Recorder(
        model,
        [keep] if isinstance(keep, str) else list(keep),
        retention,
        NO_CHANGES if not change else Changes(change),
        OF_MODULES if num_heads is None else Heads(num_heads),
    )


class Recorder:
    """The context manager that `record` returns."""

    def __init__(
        self, model: nn.Module, patterns: Sequence[str], retention: Retention, changes: Changes, heads: Heads
    ) -> None:
        self._names = Names(model)
        self._patterns = patterns
        self._keep_all = "*" in patterns
        self._retention = retention
        self._heads = heads
        self._changes = changes
        self.changes = bool(changes)
        self._plain = self._keep_all and retention.everything and not self.changes
        self._softmaxes = Softmaxes()
        self.trace = Trace(structure=self._names.structure)
        self.quick: Callable[..., bool] | None = None
        self._seen = 0
        self._entered = False
        self._mode: RecordingMode | None = None
        self._optimiser: RemovableHandle | None = None
        self._copies: dict[int, Tensor] = {}

    def __enter__(self) -> Trace:
        if self._entered:
            raise RuntimeError("A recording can be entered only once: call record(model) again.")
        self._entered = True
        self._runs = Runs(self._names, sys._getframe(1))
        self._backlog = self.trace.backlog = Backlog(self._names, self._runs, self.trace.waiting)
        if self._plain:
            self.quick = self._backlog.step
        self._outer = function_modes() if function_mode_count() else []
        self._watch = Watch(self._names)
        try:
            patches.start(self, self._names.structure)
        except BaseException:
            self._watch.stop()
            raise
        return self.trace

    def _start_mode(self) -> None:
        if self._mode is None:
            self._mode = RecordingMode(
                outer=self._outer,
                softmaxes=self._softmaxes,
                path_at=self._names.path,
                attended=self._multiplied,
                change_at=self.change_at if self.changes else None,
            )
            self._mode.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._mode is not None:
            self._mode.stop()
        self._watch.stop()
        if self._optimiser is not None:
            self._optimiser.remove()
        watched = patches.stop(self)
        self._softmaxes.followed.clear()
        # They refer to the recording and to frames: the last reference to the trace should free what is kept.
        watch, paths, noted = self._watch, self._backlog.paths, lambda: self.trace.waiting
        self._backlog.end()
        self.quick = None
        del self._mode, self._runs, self._optimiser, self._backlog, self._watch, self._outer
        missing = [] if error else watch.found(noted, paths, self.trace.left_out, self._softmaxes)
        if not watched and error is None:
            missing.append(Missing(self._names.whole, NO_LONGER_WATCHED))
        if error is None:
            self.trace.end(missing)
        self._retention.end(noted, missing)
        if error is None and self.changes:
            self._changes.check_used()
        if missing:
            warn(missing, stacklevel=3)
        if error is None and self._patterns and not paths and self.trace.left_out:
            warnings.warn(self.trace.why_empty(), stacklevel=2)

    def change_at(self, frame: FrameType) -> Change | None:
        """The change of attention that is called in this frame, if there is one."""
        if not self.changes:
            return None
        path = self._names.path(frame)
        if path is None:
            return None
        path = path or self._names.whole
        change = self._changes.of(path)
        return None if change is None else partial(self._change, change, path, frame)

    def _change(
        self,
        change: Callable[[Tensor, Tensor, Positions], Tensor],
        path: str,
        frame: FrameType,
        weights: Tensor,
        mask: Tensor,
        keys: Tensor | None = None,
    ) -> Tensor:
        positions = FOLLOWING
        if keys is not None and not in_backward():
            with without_function_modes():
                positions = self._backlog.foresee(path, self._runs.number(frame), weights, keys, frame)
        with muted():
            return change(weights, mask, positions)

    def attended(
        self,
        attend: Callable[..., Captured],
        frame: FrameType,
        suffix: str = "",
        values: Tensor | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] = NONE,
    ) -> None:
        """Keeps attention that was called in this frame, if the model called it.

        Args:
            attend: says what was attended.
            frame: of the call.
            suffix: the name of the submodule that a fused layer skips.
            values: what the call read, if its keys are not known.
            args, kwargs: of `attend`.
        """
        path = self._names.path(frame)
        if path is None or in_backward():
            return
        self._seen += 1
        path = ".".join(filter(None, (path, suffix))) or self._names.whole
        if not self._keep_all and not any(matches(path, pattern) for pattern in self._patterns):
            self.trace.left_out.add(path)
            return
        with without_function_modes():
            attended = attend(*args, **kwargs)
            if transforming():
                self._refuse_transforms(attended, path)
            attended = self._heads.split(attended, path, self._names.modules_of, frame)
            kept = self._retention.keep(attended, path)
            if self._retention.written and self._optimiser is None:
                self._optimiser = register_optimizer_step_pre_hook(self._copy_parameters)
            kept.run = self._runs.number(frame)
            self._backlog.add(path, kept, attended, values, frame)

    def _refuse_transforms(self, attended: Captured, path: str) -> None:
        for part, tensor in attended.tensors.items():
            if inside_transform(tensor):
                raise NotImplementedError(f"{part} of {path!r} is inside torch.func: record outside of it.")

    def _completed(self, attend: Callable[[], Captured], frame: FrameType, values: Tensor | None = None) -> None:
        with muted():
            self.attended(attend, frame, values=values)

    def _multiplied(self, attend: Callable[[], Captured], frame: FrameType, values: Tensor | None) -> None:
        path = self._names.path(frame)
        if path is not None:
            self._watch.multiplied(path, attend().tensors["weights"].shape, self._names.forward(frame))
        self._completed(attend, frame, values)

    def softmax(self, args: Sequence[Any], result: Tensor, frame: FrameType | None) -> None:
        """Follows a softmax, which may become attention."""
        if frame is None or frame.f_globals.get("__name__", "").startswith(NOT_FOLLOWED):
            return
        inside = self._mode is not None or self._names.path(frame) is not None
        if inside and self._softmaxes.begin(args[1], result):
            self._start_mode()

    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType) -> None:
        """Keeps a softmax over the edges of a graph."""
        self.attended(lambda: edge_softmax(weights, index, num_nodes, dim, self._names.forward(frame)), frame)

    def read(self, reader: Callable[[], Reading]) -> Reading:
        """Keeps a reading of Saccade's attention. Its softmax does not count again; a fused kernel is kept instead."""
        seen = self._seen + self._backlog.taken
        self._softmaxes.paused += 1
        try:
            reading = reader()
        finally:
            self._softmaxes.paused -= 1
        if self._seen + self._backlog.taken == seen:
            self._completed(lambda: attended_by(reading), sys._getframe(1))
        return reading

    def _copy_parameters(self, *_: Any) -> None:
        """Copies parameters before an optimiser changes them."""
        copies: dict[Any, Tensor] = {}
        for _place, kept in self.trace.waiting:
            kept.copy_tensors(copies, self._copies)
