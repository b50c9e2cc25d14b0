"""What has to be changed in libraries while something is recorded, and is changed back afterwards.

Every change is of the whole process and looks first whether this thread records; all others notice nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.overrides import _get_current_function_mode_stack

from saccade.attention import Attention
from saccade.interpretation.recording.functions import ATTENTION, EDGE_SOFTMAX, SOFTMAX, Function
from saccade.interpretation.recording.holders import Imports, Namespace, held
from saccade.interpretation.recording.recipes import Attended
from saccade.interpretation.recording.watching import Watch
from saccade.reading import Reading

FAST_PATHS = ("torch.nn.modules.activation", "torch.nn.modules.transformer")


class Listener(Protocol):
    """A recording, as the changes know it. A frame is that of the caller."""

    def attended(self, attend: Callable[[], Attended], frame: FrameType, suffix: str) -> None: ...
    def softmax(self, args: Sequence[Any], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None: ...
    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType) -> None: ...
    def read(self, reader: Callable[[], Reading]) -> Reading: ...


Wrap = Callable[[Any], Any]
Tell = Callable[[Listener, Sequence[Any], dict[str, Any], Any, FrameType], None]


class _Local(threading.local):
    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self.inside = False  # of a function that is told of: what it calls is part of it


_local = _Local()
_lock = threading.Lock()
_users = 0
_compiling = ExitStack()
_changes: list[tuple[Namespace, str, Any, Any]] = []
_overridden: list[tuple[type, str, Any]] = []
_wrappers: dict[int, Any] = {}
_imports = Imports()


@contextmanager
def installed(listener: Listener, namespaces: Sequence[Namespace]) -> Iterator[None]:
    """While inside, the listener hears of this thread's attention, and nothing runs compiled.

    Args:
        listener: the recording.
        namespaces: of the model, which may hold functions by names of their own.
    """
    global _users
    with _lock:
        try:
            if not _users:
                _install()
            for namespace, name in held(namespaces, _wrappers.keys()):
                _replace(namespace, name, _wrappers[id(namespace[name])])
        except BaseException:
            _uninstall()
            raise
        _users += 1
    _local.listeners.append(listener)
    try:
        yield
    finally:
        _local.listeners.remove(listener)
        with _lock:
            _users -= 1
            _uninstall()


class unheard:  # noqa: N801 (it is used as a function, and entered at every call of attention)
    """While inside, nothing that this thread calls is told of."""

    def __enter__(self) -> None:
        self._before, _local.inside = _local.inside, True

    def __exit__(self, *error: object) -> None:
        _local.inside = self._before


def _install() -> None:
    _override(Attention, "read", _read)
    _override(Tensor, "softmax", _heard_softmax)
    asked = torch.overrides.has_torch_function
    _replace(vars(torch.overrides), "has_torch_function", _has_torch_function(asked))
    for module, name, wrap in WRAPS:
        namespace = getattr(sys.modules.get(module), "__dict__", {})
        if name in namespace:
            original = namespace[name]
            wrapper = wrap(original)
            _replace(namespace, name, wrapper)
            if not isinstance(original, HigherOrderOperator):  # PyTorch's own modules need the object itself
                _wrappers[id(original)] = wrapper
    for namespace, name in _imports.of(frozenset(_wrappers)):
        wrapper = _wrappers.get(id(namespace.get(name)))
        if wrapper is not None:
            _replace(namespace, name, wrapper)
    if "torch._dynamo" in sys.modules or "torch.nn.attention.flex_attention" in sys.modules:
        _compiling.enter_context(torch.compiler.set_stance("force_eager"))


def _uninstall() -> None:
    """Changes everything back when nobody records any more."""
    if _users:
        return
    _compiling.close()
    _wrappers.clear()
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


def _replace(namespace: Namespace, name: str, replacement: Any) -> None:
    _changes.append((namespace, name, namespace[name], replacement))
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
            listeners = _local.listeners
            if not listeners or _local.inside:
                return original(*args, **kwargs)
            _local.inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                _local.inside = False
            for listener in listeners:
                tell(listener, args, kwargs, result, sys._getframe(1))
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
)
