"""record: what a model attends to, without a change to the model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor, peek_interpreter_stack

from saccade.interpretation.recording.graphs import edge_softmax
from saccade.interpretation.recording.installed import forget, hear, unheard
from saccade.interpretation.recording.keeping import Keeper, Kept, Reduction, storage_of
from saccade.interpretation.recording.naming import Names, path_of
from saccade.interpretation.recording.readings import looked
from saccade.interpretation.recording.recipes import Attended
from saccade.interpretation.recording.softmaxes import Softmaxes
from saccade.interpretation.recording.trace import Trace, matches
from saccade.interpretation.recording.watching import Watch
from saccade.reading import Reading


def record(
    model: nn.Module,
    *,
    keep: str | Sequence[str] = "*",
    heads: Sequence[int] | None = None,
    reduce: Reduction = None,
    dtype: torch.dtype | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Recorder:
    """Records the attention of a model while the block runs: `with record(model) as trace: model(...)`.

    The model computes what it computes otherwise, by the same kernels. Of each call references to queries, keys and
    mask are kept, and the weights are computed from them when they are looked at. Seen are
    `F.scaled_dot_product_attention`, `nn.MultiheadAttention` and the layers made of it, FlexAttention, a softmax whose
    result is multiplied by values, the edge softmax of PyTorch Geometric, and Saccade's attention; not seen are
    kernels outside PyTorch, functions that were put away before (`functools.partial`), and other normalisations than
    softmax that a model writes by itself.

    What runs in this thread, inside of the model, is recorded, compiled models as if they were not. What is computed
    again in a backward pass (checkpointing) is not recorded again.

    Args:
        model: its modules name the calls.
        keep: names or patterns (`"encoder.*"`) of the modules to keep; parts of a path will do.
        heads: the numbers of the heads to keep.
        reduce: "mean" or "max" over the heads, or ("top_k", k) for the k greatest weights of each query; the weights
            are then computed at once, in blocks.
        dtype: keeps queries and keys, or reduced weights, in this dtype, such as torch.float16.
        spill: an empty folder, to which everything that is kept is written at once.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"record takes an nn.Module, got {type(model).__name__}.")
    keeper = Keeper(heads=heads, reduce=reduce, dtype=dtype, spill=None if spill is None else Path(spill))
    return Recorder(model, [keep] if isinstance(keep, str) else list(keep), keeper)


class Recorder:
    """Notes the calls of attention in its block."""

    def __init__(self, model: nn.Module, patterns: Sequence[str], keeper: Keeper) -> None:
        self._names = Names(model)
        self._root = type(model).__name__
        self._patterns = patterns
        self._keep_all = "*" in patterns
        self._keeper = keeper
        self._softmaxes = Softmaxes()
        self.trace = Trace()
        self._kept_in: dict[int, list[Kept]] = {}
        self._indexed = 0
        self._seen = 0
        self._entered = False

    def __enter__(self) -> Trace:
        if self._entered:
            raise RuntimeError("This recording is going on or over: record(model) makes another.")
        self._entered = True
        self._watch = Watch(softmaxes=self._softmaxes, written=self._secure, attended=self._completed)
        hear(self, map(vars, self._names.modules), self._names.code)
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watch.stop()
        forget(self)
        self._softmaxes.followed.clear()
        del self._watch  # which refers to the recording: what is kept should go with the last reference to the trace

    def attended(self, attend: Callable[[], Attended], frame: FrameType, suffix: str = "") -> None:
        """Attention that was called in this frame is kept, if it is the model's."""
        place = self._names.place(frame)
        if place is None or torch._C._current_graph_task_id() != -1:  # outside of the model, or in a backward pass
            return
        self._seen += 1
        place = (place, suffix) if suffix else place or ((), self._root)
        if not self._keep_all and not any(matches(path_of(place), pattern) for pattern in self._patterns):
            self.trace.leave_out(path_of(place))
            return
        with torch._C.DisableTorchFunction():
            attended = attend()
            if peek_interpreter_stack() is not None:
                for part, tensor in attended.tensors.items():
                    if is_functorch_wrapped_tensor(tensor):
                        name = path_of(place)
                        raise NotImplementedError(f"{part} of {name!r} is inside of torch.func: record outside of it.")
            recipe, kept = self._keeper.keep(attended, place)
        self.trace.noted.append((place, recipe, kept))
        if kept.may_change:
            self._watch.start()

    def _completed(self, attend: Callable[[], Attended], frame: FrameType) -> None:
        with unheard():
            self.attended(attend, frame)

    def softmax(self, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        """A softmax may become attention; that of a reading is the reading's."""
        inside = self._watch.started or self._names.place(frame) is not None
        if inside and self._softmaxes.begin(args, kwargs, result):
            self._watch.start()

    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType) -> None:
        """A softmax over the edges of a graph."""
        self.attended(lambda: edge_softmax(weights, index, num_nodes, dim, self._names.forward(frame)), frame)

    def read(self, reader: Callable[[], Reading]) -> Reading:
        """A reading of Saccade's attention; the softmax inside is the same attention, a fused kernel notes itself."""
        seen = self._seen
        self._softmaxes.paused += 1
        try:
            reading = reader()
        finally:
            self._softmaxes.paused -= 1
        if self._seen == seen:
            self._completed(lambda: looked(reading), sys._getframe(1))
        return reading

    def _secure(self, written: Any) -> None:
        """Copies what was kept of tensors that are about to be overwritten, such as the cache of a decoder."""
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
