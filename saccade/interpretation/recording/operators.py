"""The replacements of PyTorch's operators for softmax and attention, however they are called."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.functions import SCALED_DOT, SOFTMAX, Function
from saccade.interpretation.recording.threads import Thread, muted
from saccade.kernels.private_torch import (
    overrides_functions,
    replace_operators,
    set_watching,
    without_function_modes,
)

IN_BETWEEN = ("torch.", "saccade.interpretation.recording.")
"""Code between a caller and the operator that it calls, such as `torch.nn.functional`."""


def replace(thread: Thread, attention: Callable[[Function, Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replaces the operators in threads that record.

    Args:
        thread: the recordings of the thread that asks.
        attention: makes the replacement of a function that computes attention.
    """
    softmaxes = {name: _softmax(thread, original) for name, original in SOFTMAX.items()}
    original = torch.ops.aten.scaled_dot_product_attention
    replace_operators({SCALED_DOT.name: _scaled_dot(thread, original, attention(SCALED_DOT, original)), **softmaxes})


def rewatching(thread: Thread, original: Callable[..., Any]) -> Callable[..., Any]:
    """The replacement of an end of an inference mode, the last of which makes a thread forget what it watches."""

    @functools.wraps(original)
    def end(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            set_watching(bool(thread.recordings))

    return end


def _scaled_dot(
    thread: Thread, original: Callable[..., Tensor], attention: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    def scaled_dot(*args: Any, **kwargs: Any) -> Tensor:
        with without_function_modes():
            if thread.recordings:
                return attention(*args, **kwargs)
            set_watching(False)  # the end of an inference mode has brought back the watch
            return original(*args, **kwargs)

    return scaled_dot


def _softmax(thread: Thread, original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def softmax(*args: Any, **kwargs: Any) -> Tensor:
        if not thread.recordings:
            set_watching(False)
            return original(*args, **kwargs)
        with muted():
            with without_function_modes():
                result = _as_subclass(args[0], original(*args, **kwargs))
            if not torch.compiler.is_compiling():  # a graph that is traced would contain the steps of following it
                for recording in thread.recordings:
                    recording.softmax(args, result, _caller(sys._getframe(1)))
        return result

    return softmax


def _as_subclass(given: Tensor, result: Tensor) -> Tensor:
    """The result as `Tensor.__torch_function__` converts it for a subclass: a later conversion is another object."""
    kind = type(given)
    if type(result) is not Tensor or not overrides_functions(given):
        return result
    own = getattr(kind.__torch_function__, "__func__", None)
    usual = getattr(Tensor.__torch_function__, "__func__", None)
    return result.as_subclass(kind) if own is usual else result


def _caller(frame: FrameType | None) -> FrameType | None:
    """The frame that called an operator, by way of this one."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(IN_BETWEEN):
        frame = frame.f_back
    return frame
