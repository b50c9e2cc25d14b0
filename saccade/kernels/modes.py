"""The PyTorch mode in which the code is running."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from saccade.kernels.private_torch import dispatch_mode_active, is_zero_tensor, transforms_active


def exporting() -> bool:
    """Whether torch.export is running: then the graph may only contain PyTorch's own operators."""
    is_exporting = getattr(torch.compiler, "is_exporting", None)
    return is_exporting() if is_exporting is not None else False


def transforming() -> bool:
    """Whether torch.func or forward-mode differentiation is running, which our backward passes do not support."""
    if torch.compiler.is_compiling():
        return False
    return transforms_active()


_plainly: ContextVar[bool] = ContextVar("plainly", default=False)


@contextmanager
def plainly() -> Iterator[None]:
    """Inside, only PyTorch's own operators run: for code that will be exported, and to compare kernels with."""
    token = _plainly.set(True)
    try:
        yield
    finally:
        _plainly.reset(token)


def plain_only() -> bool:
    """Whether only PyTorch's own operators work: under torch.export, torch.func or torch.jit.trace, or `plainly`."""
    if torch.compiler.is_compiling():
        return exporting()
    return _plainly.get() or transforming() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]


def recording() -> bool:
    """Whether operators are intercepted, by torch.compile or by a mode such as fake tensors.

    Then everything must be an operator, ours or PyTorch's.
    """
    return torch.compiler.is_compiling() or dispatch_mode_active()


def visible(tensor: Tensor) -> bool:
    """Whether Python may read the values, which would synchronise a device and is impossible in a graph."""
    return not recording() and not plain_only() and tensor.device.type == "cpu" and ordinary(tensor)


def ordinary(tensor: Tensor) -> bool:
    """Whether the tensor is backed by memory that holds its values."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_neg()
        and not is_zero_tensor(tensor)
    )
