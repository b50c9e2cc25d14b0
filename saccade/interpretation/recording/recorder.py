"""record: what a model attends to, without a change to the model."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from saccade.interpretation.recording.flex import flex_forward
from saccade.interpretation.recording.graphs import edge_softmax
from saccade.interpretation.recording.installed import installed
from saccade.interpretation.recording.keeping import Keeper, Kept, Reduction, storage_of
from saccade.interpretation.recording.multihead import encoder_layer_forward, functional_forward, native_forward
from saccade.interpretation.recording.naming import Names
from saccade.interpretation.recording.readings import looked
from saccade.interpretation.recording.recipes import Attended, ScaledDot
from saccade.interpretation.recording.softmaxes import PART_OF, Part, Softmaxes
from saccade.interpretation.recording.trace import Trace, matches
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
    kernels outside PyTorch and other normalisations than softmax that a model writes by itself.

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


class Recorder(TorchFunctionMode):
    """Sees every function of PyTorch that is called in its block, and notes those that are attention."""

    def __init__(self, model: nn.Module, patterns: Sequence[str], keeper: Keeper) -> None:
        super().__init__()
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
        self._reading = 0
        self._context: ExitStack | None = None

    def __enter__(self) -> Trace:
        if self._context is not None:
            raise RuntimeError("This recording is going on or over: record(model) makes another.")
        self._context = ExitStack()
        self._context.enter_context(installed(self))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._context is not None
        super().__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]
        self._context.close()
        self._softmaxes = Softmaxes()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Every function that the model calls comes through here: what is not attention has to leave soon.
        role = ROLES.get(func)
        if role is NOTHING and not kwargs:
            return func(*args)
        kwargs = kwargs or {}
        if role is None:
            role = ROLES[func] = _role(func)
        if role.writes or "out" in kwargs:
            self._secure(kwargs.get("out", args[0] if args else None))
        result = func(*args, **kwargs)
        if role.attend is not None:
            attend = functools.partial(role.attend, *args, **kwargs)
            self._note(attend, sys._getframe(1), SUFFIXES.get(role.attend, ""))
        elif role.part is Part.SOFTMAX and not self._reading:
            self._softmaxes.begin(args, kwargs, result)
        elif role.part is not None and self._softmaxes.followed and not self._reading:
            attended = self._softmaxes.step(role.part, args, kwargs, result)
            if attended is not None:
                self._note(lambda: attended, sys._getframe(1))
        return result

    def read(self, reader: Callable[[], Reading]) -> Reading:
        """A reading of Saccade's attention; the softmax inside is the same attention, a fused kernel notes itself."""
        seen = self._seen
        self._reading += 1
        try:
            reading = reader()
        finally:
            self._reading -= 1
        if self._seen == seen:
            self._note(lambda: looked(reading), sys._getframe(1))
        return reading

    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int) -> None:
        """A softmax over the edges of a graph."""
        frame = sys._getframe(1)
        self._note(lambda: edge_softmax(weights, index, num_nodes, dim, self._names.forward(frame)), frame)

    def _note(self, attend: Callable[[], Attended], frame: FrameType, suffix: str = "") -> None:
        """Keeps a call of attention that was made in this frame."""
        path = self._names.path(frame)
        if path is None or torch._C._current_graph_task_id() != -1:  # outside of the model, or in a backward pass
            return
        self._seen += 1
        path = path + suffix if path else suffix[1:] or self._root
        name = self.trace.next_name(path)
        if self._keep_all or any(matches(path, pattern) for pattern in self._patterns):
            with torch._C.DisableTorchFunction():
                attended = attend()
                for part, tensor in attended.tensors.items():
                    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
                        raise NotImplementedError(f"{part} of {name!r} is inside of torch.func: record outside of it.")
                self.trace.add(path, name, *self._keeper.keep(attended, name))
        else:
            self.trace.leave_out(path)

    def _secure(self, written: Any) -> None:
        """Copies what was kept of tensors that are about to be overwritten, such as the cache of a decoder."""
        for call in self.trace.calls[self._indexed :]:
            for tensor in call.kept.tensors.values():
                self._kept_in.setdefault(storage_of(tensor), []).append(call.kept)
        self._indexed = len(self.trace.calls)
        if not self._kept_in:
            return
        copies: dict[Any, Tensor] = {}
        for tensor in written if isinstance(written, list | tuple) else [written]:
            if isinstance(tensor, Tensor) and tensor.layout == torch.strided:
                storage = storage_of(tensor)
                for kept in self._kept_in.pop(storage, ()):
                    kept.secure(storage, copies)


def sdpa_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Attended:
    """A call of `F.scaled_dot_product_attention`."""
    tensors = {"query": query, "key": key}
    if attn_mask is not None:
        tensors["mask"] = attn_mask
    return Attended(ScaledDot(scale=scale, causal=is_causal), tensors)


ATTENTION: dict[str, Callable[..., Attended]] = {
    "scaled_dot_product_attention": sdpa_forward,
    "multi_head_attention_forward": functional_forward,
    "_native_multi_head_attention": native_forward,
    "_transformer_encoder_layer_fwd": encoder_layer_forward,
    "flex_attention": flex_forward,
}
SUFFIXES = {encoder_layer_forward: ".self_attn"}
"""What the fast path of a layer skips of the path that the plain one has."""

IN_PLACE = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")}


class Role(NamedTuple):
    """What a function of PyTorch is to a recording: attention, a part of it, a change of its first argument."""

    attend: Callable[..., Attended] | None = None
    part: Part | None = None
    writes: bool = False


NOTHING = Role()
ROLES: dict[Any, Role] = {}
"""Of the functions that were met."""


def _role(func: Any) -> Role:
    name = getattr(func, "__name__", "").partition(".")[0]
    operator = name.startswith("__") and name.endswith("__")
    writes = name == "__setitem__" or name in IN_PLACE if operator else name.endswith("_")
    role = Role(ATTENTION.get(name), PART_OF.get(name), writes)
    return NOTHING if role == NOTHING else role
