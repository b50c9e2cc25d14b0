"""The replacements of attention functions while something is recorded; see `operators.py` for those of operators."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from saccade.attention import Attention
from saccade.interpretation.recording.function_mode import RecordingMode
from saccade.interpretation.recording.functions import (
    ATTENTION,
    CONCATENATION,
    EDGE_SOFTMAX,
    SCALED_DOT,
    Function,
)
from saccade.interpretation.recording.kept import GROWING
from saccade.interpretation.recording.operators import replace
from saccade.interpretation.recording.recipes import Captured, Change, Given
from saccade.interpretation.recording.references import Wrap
from saccade.interpretation.recording.threads import Recording, Thread
from saccade.kernels.private_torch import (
    function_modes,
    is_paused,
    is_watching,
    overrides_functions,
    set_paused,
    set_watching,
)
from saccade.memory import Memory
from saccade.reading import Reading, State

BIASES = "torch.nn.attention.bias"
FAST_PATHS = ("torch.nn.modules.activation", "torch.nn.modules.transformer")
MULTI_HEAD = "multi_head_attention_forward"
USUAL_MASKS = frozenset((Tensor, type(None)))


class Calls:
    """What runs in place of the replaced functions.

    Attributes:
        thread: the recordings of the thread that asks.
    """

    def __init__(self) -> None:
        self.thread = Thread()
        self._operators = False  # whether they are replaced
        self._lists: dict[int, list[Recording]] = {}  # of the thread of each recording

    def start(self, recording: Recording) -> None:
        """Notifies a recording of this thread's calls, of functions that are replaced and of operators."""
        if not self._operators:
            replace(self.thread, self._attention)
            self._operators = True
        thread = self.thread
        if not thread.recordings:
            set_watching(True)
        thread.recordings.append(recording)
        self._lists[id(recording)] = thread.recordings
        thread.changing = any(each.changes for each in thread.recordings)

    def stop(self, recording: Recording) -> bool:
        """Ends the notifications of a recording; returns whether operators were replaced until now."""
        thread = self.thread
        recordings = self._lists.pop(id(recording))
        recordings.remove(recording)
        if recordings is not thread.recordings:
            raise RuntimeError("A recording must end in the thread in which it started.")
        watched = is_watching()
        if not thread.recordings:
            set_watching(False)
        if thread.changing:
            thread.changing = any(each.changes for each in thread.recordings)
        return watched

    def wraps(self) -> list[tuple[str, str, Wrap]]:
        """For each function to replace: the module that defines it, its name, and a factory for its replacement."""
        found: list[tuple[str, str, Wrap]] = [
            (each.module, each.name, functools.partial(self._attention, each)) for each in ATTENTION
        ]
        found.append((*EDGE_SOFTMAX, functools.partial(self._wrap, self._run_edges)))
        found.append(("torch.overrides", "has_torch_function", self._has_torch_function))
        found.append((*CONCATENATION, self._concatenation))
        return found

    def _wrap(self, run: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls `run` where this thread records, and the original otherwise."""
        thread = self.thread

        @functools.wraps(original, updated=())
        def function(*args: Any, **kwargs: Any) -> Any:
            if not thread.recordings or is_paused():
                return original(*args, **kwargs)
            set_paused(True)  # it is recorded as a whole, including what it calls
            try:
                return run(original, args, kwargs, sys._getframe(1))
            finally:
                set_paused(False)

        return function

    def _attention(self, function: Function, original: Callable[..., Any]) -> Callable[..., Any]:
        """The replacement of a function that computes attention: models call it most, so it does little."""
        thread, attend, suffix = self.thread, function.attend, function.suffix
        plain = function is SCALED_DOT

        @functools.wraps(original, updated=())
        def attention(*args: Any, **kwargs: Any) -> Any:
            mask = kwargs["attn_mask"] if "attn_mask" in kwargs else args[3] if len(args) > 3 else None
            if type(mask) not in USUAL_MASKS and type(mask).__module__ == BIASES:
                # Such a mask checks that the function has its present name.
                return torch.overrides.handle_torch_function(attention, [mask], *args, **kwargs)
            recordings = thread.recordings
            if not recordings or is_paused():
                return original(*args, **kwargs)
            set_paused(True)
            try:
                frame = sys._getframe(1)
                change = self.change_at(frame) if thread.changing else None
                if change is not None:
                    return self._run_changed(function, change, original, args, kwargs, frame)
                result = original(*args, **kwargs)
                for recording in recordings:
                    quick = recording.quick if plain else None
                    if quick is None or not quick(frame, *args, **kwargs):
                        recording.attended(attend, frame, suffix, None, args, kwargs)
                return result
            finally:
                set_paused(False)

        return attention

    def _run_changed(
        self,
        function: Function,
        change: Change,
        original: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        frame: FrameType,
    ) -> Any:
        if function.name == MULTI_HEAD:
            return self._run_multi_head(original, args, kwargs)
        if function.changed is None:
            raise NotImplementedError(f"The weights of {function.module}.{function.name} cannot be changed.")
        changed = function.changed(original, change, *args, **kwargs)
        if changed is None:
            result = original(*args, **kwargs)
            for recording in self.thread.recordings:
                recording.attended(function.attend, frame, function.suffix, None, args, kwargs)
            return result
        result, weights, keys = changed
        self.thread.changed = weights
        for recording in self.thread.recordings:
            recording.attended(lambda: Captured(Given(), {"weights": weights}), frame, values=keys)
        return result

    def _concatenation(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A cache that grows appends new keys to the old ones. Seeing it saves comparing them."""

        @functools.wraps(original, updated=())
        def concatenation(tensors: Any = (), dim: Any = None, **others: Any) -> Any:
            if dim is None or others or not tensors:  # caches name the axis, and nothing else
                given = {} if dim is None else {"dim": dim}
                return original(tensors, **given, **others)
            result = original(tensors, dim)
            cache = GROWING.get(id(tensors[0]))
            if cache is not None and cache.key is tensors[0] and dim in (-2, cache.key.dim() - 2):
                cache.grown = result
            return result

        return concatenation

    def _run_multi_head(self, original: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Without weights to return, it calls `F.scaled_dot_product_attention`, whose weights can be changed."""
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        wanted, call.arguments["need_weights"] = call.arguments["need_weights"], False
        self.thread.changed = None
        query = call.arguments["query"]
        devices = [query.device] if query.is_cuda else []
        states = torch.get_rng_state(), [torch.cuda.get_rng_state(each) for each in devices]
        set_paused(False)
        try:
            output, _ = original(*call.args, **call.kwargs)
        finally:
            set_paused(True)
        weights, self.thread.changed = self.thread.changed, None
        if not wanted:
            return output, None
        if weights is None:  # the change left them as they were: the same again, with the same dropout
            torch.set_rng_state(states[0])
            for device, state in zip(devices, states[1], strict=True):
                torch.cuda.set_rng_state(state, device)
            return original(*args, **kwargs)
        weights = weights.mean(1) if call.arguments["average_attn_weights"] else weights
        return output, weights if call.arguments["query"].dim() == 3 else weights.squeeze(0)

    def _run_edges(self, original: Callable[..., Any], args: Any, kwargs: dict[str, Any], frame: FrameType) -> Any:
        if self.change_at(frame) is not None:
            raise NotImplementedError(
                "The weights of a graph's edges cannot be changed: leave this module out of change=."
            )
        result = original(*args, **kwargs)
        index, num_nodes, dim = _edge_arguments(*args, **kwargs)
        if index is not None:
            for recording in self.thread.recordings:
                recording.edges(result, index, num_nodes, dim, frame)
        return result

    def watches(self) -> bool:
        """Whether this thread records."""
        return bool(self.thread.recordings)

    def read(self, attention: Attention, query: Tensor | None, memory: Memory, state: State | None) -> Reading:
        """A reading of Saccade's attention, recorded or changed."""
        change = self.change_at(sys._getframe(1))
        if change is None:
            reader = functools.partial(attention.read_unwatched, query, memory, state=state)
        else:
            reader = functools.partial(attention.read_changed, query, memory, change, state=state)
        for recording in self.thread.recordings:
            reader = functools.partial(recording.read, reader)
        return reader()

    def note(self, reading: Reading) -> bool:
        """Records a reading of Saccade's attention; False if its weights are to be changed."""
        if self.change_at(sys._getframe(1)) is not None:
            return False
        for recording in self.thread.recordings:
            recording.read(lambda: reading)
        return True

    def _has_torch_function(self, original: Callable[[Iterable[Any]], bool]) -> Callable[[Iterable[Any]], bool]:
        """PyTorch's layers ask this before they take a fast path. Recording allows these paths, changing does not."""

        @functools.wraps(original)
        def has_torch_function(arguments: Iterable[Any]) -> bool:
            if sys._getframe(1).f_globals.get("__name__") not in FAST_PATHS:
                return original(arguments)
            if self.thread.changing:
                return True
            modes = function_modes()
            if not modes or any(not isinstance(mode, RecordingMode) for mode in modes):
                return original(arguments)
            return any(map(overrides_functions, arguments))

        return has_torch_function

    def change_at(self, frame: FrameType) -> Change | None:
        """What all recordings of this thread change in attention that is called in this frame."""
        found = [each.change_at(frame) for each in self.thread.recordings if each.changes]
        changes = [change for change in found if change is not None]
        if not changes:
            return None

        def change(weights: Tensor, mask: Tensor, keys: Tensor | None = None) -> Tensor:
            for each in changes:
                weights = each(weights, mask, keys)
            return weights

        return change


def _edge_arguments(
    src: Tensor, index: Tensor | None = None, ptr: Tensor | None = None, num_nodes: int | None = None, dim: int = 0
) -> tuple[Tensor | None, int | None, int]:
    return index, num_nodes, dim
