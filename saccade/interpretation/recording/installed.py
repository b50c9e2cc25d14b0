"""What has to be changed in libraries while something is recorded, and is changed back afterwards.

Every change is of the whole process and looks first whether this thread records; all others notice nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack

from saccade.attention import Attention
from saccade.interpretation.recording.functions import ATTENTION, EDGE_SOFTMAX, SOFTMAX, Function
from saccade.interpretation.recording.holders import Change, Namespace, Places, Wrap, held, own_values
from saccade.interpretation.recording.recipes import Attended
from saccade.interpretation.recording.watching import Watch
from saccade.reading import Reading

BIASES = "torch.nn.attention.bias"
FAST_PATHS = ("torch.nn.modules.activation", "torch.nn.modules.transformer")


class Listener(Protocol):
    """A recording, as the changes know it. A frame is that of the caller."""

    def attended(self, attend: Callable[[], Attended], frame: FrameType, suffix: str) -> None: ...
    def softmax(self, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None: ...
    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType) -> None: ...
    def read(self, reader: Callable[[], Reading]) -> Reading: ...


Tell = Callable[[Listener, Sequence[Any], dict[str, Any], Any, FrameType], None]


class _Local(threading.local):
    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self.inside = False  # of a function that is told of: what it calls is part of it


_local = _Local()
_lock = threading.Lock()
_users = 0
_changes: list[Change] = []
_overridden: list[tuple[type, str, Any]] = []
_stances: list[torch._dynamo.set_stance] = []


def hear(listener: Listener, modules: Iterable[Namespace], code: Iterable[Namespace]) -> None:
    """From now on the listener hears of this thread's attention, and nothing runs compiled.

    Args:
        listener: the recording.
        modules: the namespaces of the model's modules, which may hold functions by names of their own.
        code: the namespaces of the code of these modules, the same.
    """
    global _users
    with _lock:
        try:
            if not _users:
                _install()
            for namespace, name in held(modules, _places.ids, own_values) + held(code, _places.ids):
                _replace(namespace, name, namespace[name], _places.wrappers[id(namespace[name])])
        except BaseException:
            _uninstall()
            raise
        _users += 1
    _local.listeners.append(listener)


def forget(listener: Listener) -> None:
    """The listener hears nothing any more; without listeners everything is as it was."""
    global _users
    try:
        _local.listeners.remove(listener)
    finally:
        with _lock:
            _users -= 1
            _uninstall()


class unheard:  # noqa: N801 (it is used as a function)
    """While inside, nothing that this thread calls is told of."""

    def __enter__(self) -> None:
        self._before, _local.inside = _local.inside, True

    def __exit__(self, *error: object) -> None:
        _local.inside = self._before


def _install() -> None:
    for change in _places.changes():
        _replace(*change)
    _override(Attention, "read", _read)
    _override(Tensor, "softmax", _heard_softmax)
    if "torch._dynamo" in sys.modules or "torch.nn.attention.flex_attention" in sys.modules:
        _stances.append(torch.compiler.set_stance("force_eager"))


def _uninstall() -> None:
    """Changes everything back when nobody records any more."""
    if _users:
        return
    while _changes:
        namespace, name, original, replacement = _changes.pop()
        if namespace.get(name) is replacement:  # nobody has changed it since
            namespace[name] = original
    while _overridden:
        owner, name, own = _overridden.pop()
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
    while _stances:
        _stances.pop().__exit__(None, None, None)


def _replace(namespace: Namespace, name: str, original: Any, replacement: Any) -> None:
    if namespace.get(name) is original:
        _changes.append((namespace, name, original, replacement))
        namespace[name] = replacement


def _override(owner: type, name: str, wrap: Wrap) -> None:
    _overridden.append((owner, name, vars(owner).get(name)))
    setattr(owner, name, wrap(getattr(owner, name)))


def _heard(tell: Tell) -> Wrap:
    """A function whose calls the listeners of its thread are told of."""

    @functools.lru_cache(maxsize=4)  # it is wrapped again at each recording
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original, updated=())
        def function(*args: Any, **kwargs: Any) -> Any:
            biases = [value for value in (*args, *kwargs.values()) if type(value).__module__ == BIASES]
            if biases:  # which look whether they are called by the function that has this name now
                return torch.overrides.handle_torch_function(function, biases, *args, **kwargs)
            listeners = _local.listeners
            if not listeners or _local.inside:
                return original(*args, **kwargs)
            _local.inside = True
            try:
                result = original(*args, **kwargs)
                for listener in listeners:
                    tell(listener, args, kwargs, result, sys._getframe(1))
            finally:
                _local.inside = False
            return result

        return function

    return wrap


def _teller(function: Function) -> Tell:
    def tell(listener: Listener, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        listener.attended(functools.partial(function.attend, *args, **kwargs), frame, function.suffix)

    return tell


def _tell_softmax(
    listener: Listener, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType
) -> None:
    listener.softmax(args, kwargs, result, frame)


def _tell_edges(listener: Listener, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
    index, num_nodes, dim = _edge_arguments(*args, **kwargs)
    if index is not None:
        listener.edges(result, index, num_nodes, dim, frame)


def _edge_arguments(
    src: Tensor, index: Tensor | None = None, ptr: Tensor | None = None, num_nodes: int | None = None, dim: int = 0
) -> tuple[Tensor | None, int | None, int]:
    return index, num_nodes, dim


def _has_torch_function(original: Callable[[Iterable[Any]], bool]) -> Callable[[Iterable[Any]], bool]:
    """PyTorch's modules ask this before they take their fast paths, which a recording need not stop."""

    @functools.wraps(original)
    def has_torch_function(arguments: Iterable[Any]) -> bool:
        asking = sys._getframe(1).f_globals.get("__name__")
        modes = _get_current_function_mode_stack()
        if asking not in FAST_PATHS or not modes or any(not isinstance(mode, Watch) for mode in modes):
            return original(arguments)
        return any(
            isinstance(value, Tensor)
            and type(value) not in (Tensor, torch.nn.Parameter)
            and type(value).__torch_function__ is not torch._C._disabled_torch_function_impl
            for value in arguments
        )

    return has_torch_function


@functools.lru_cache(maxsize=4)
def _read(original: Callable[..., Reading]) -> Callable[..., Reading]:
    @functools.wraps(original)
    def read(self: Attention, *args: Any, **kwargs: Any) -> Reading:
        reader = functools.partial(original, self, *args, **kwargs)
        for listener in _local.listeners:
            reader = functools.partial(listener.read, reader)
        return reader()

    return read


_heard_softmax = _heard(_tell_softmax)
WRAPS: tuple[tuple[str, str, Wrap], ...] = (
    *((function.module, function.name, _heard(_teller(function))) for function in ATTENTION),
    *((module, name, _heard_softmax) for module, name in SOFTMAX),
    (*EDGE_SOFTMAX, _heard(_tell_edges)),
    ("torch.overrides", "has_torch_function", _has_torch_function),
)
_places = Places(WRAPS, at_home={"has_torch_function", "flex_attention_hop"})  # others need the objects themselves
