"""What has to be changed in libraries while something is recorded, and is changed back afterwards.

Every change is of the whole process and looks first whether this thread records; all others notice nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack

from saccade.attention import Attention
from saccade.reading import Reading

FAST_PATHS = ("torch.nn.modules.activation", "torch.nn.modules.transformer")


class Listener(Protocol):
    """A recording, as the changes know it."""

    def read(self, reader: Callable[[], Reading]) -> Reading: ...
    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int) -> None: ...


class _Local(threading.local):
    def __init__(self) -> None:
        self.listeners: list[Listener] = []


_local = _Local()
_lock = threading.Lock()
_users = 0
_changes = ExitStack()


@contextmanager
def installed(listener: Listener) -> Iterator[None]:
    """While inside, the listener hears of this thread's readings and edges, and nothing runs compiled."""
    global _users
    with _lock:
        if not _users:
            _install(_changes)
        _users += 1
    _local.listeners.append(listener)
    try:
        yield
    finally:
        _local.listeners.remove(listener)
        with _lock:
            _users -= 1
            if not _users:
                _changes.close()


def _install(changes: ExitStack) -> None:
    changes.enter_context(_replaced(torch.overrides, "has_torch_function", _has_torch_function))
    changes.enter_context(_replaced(Attention, "read", _read))
    for module in _edge_softmax_users(len(sys.modules)):
        changes.enter_context(_replaced(module, "softmax", _edge_softmax))
    if "torch._dynamo" in sys.modules or "torch.nn.attention.flex_attention" in sys.modules:
        changes.enter_context(torch.compiler.set_stance("force_eager"))


@functools.lru_cache(maxsize=1)
def _edge_softmax_users(loaded: int) -> list[ModuleType]:
    """The modules that imported PyTorch Geometric's softmax, of so many that are loaded."""
    softmax = getattr(sys.modules.get("torch_geometric.utils"), "softmax", None)
    modules = [] if softmax is None else list(sys.modules.values())
    return [module for module in modules if getattr(module, "__dict__", {}).get("softmax") is softmax]


@contextmanager
def _replaced(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, wrap(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def _has_torch_function(original: Callable[[Iterable[Any]], bool]) -> Callable[[Iterable[Any]], bool]:
    """PyTorch's modules ask this before they take their fast paths, which a recording need not stop."""

    @functools.wraps(original)
    def has_torch_function(arguments: Iterable[Any]) -> bool:
        asking = sys._getframe(1).f_globals.get("__name__")
        modes = _get_current_function_mode_stack()
        if asking not in FAST_PATHS or not modes or any(mode not in _local.listeners for mode in modes):
            return original(arguments)
        return any(
            isinstance(value, Tensor)
            and type(value) not in (Tensor, torch.nn.Parameter)
            and type(value).__torch_function__ is not torch._C._disabled_torch_function_impl
            for value in arguments
        )

    return has_torch_function


def _read(original: Callable[..., Reading]) -> Callable[..., Reading]:
    @functools.wraps(original)
    def read(self: Attention, *args: Any, **kwargs: Any) -> Reading:
        reader = functools.partial(original, self, *args, **kwargs)
        for listener in _local.listeners:
            reader = functools.partial(listener.read, reader)
        return reader()

    return read


def _edge_softmax(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(original)
    def softmax(
        src: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        num_nodes: int | None = None,
        dim: int = 0,
    ) -> Tensor:
        weights = original(src, index, ptr, num_nodes, dim)
        if index is not None:
            for listener in _local.listeners:
                listener.edges(weights, index, num_nodes, dim)
        return weights

    return softmax
