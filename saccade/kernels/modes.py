"""In what way PyTorch runs us."""

import torch
from torch import Tensor

from saccade.kernels.private_torch import dispatch_mode_active, is_zero_tensor, transforms_active


def exporting() -> bool:
    """Whether torch.export is at work: the graph must then hold PyTorch's own operators alone."""
    is_exporting = getattr(torch.compiler, "is_exporting", None)
    return is_exporting() if is_exporting is not None else False


def transforming() -> bool:
    """Whether torch.func or forward-mode differentiation is at work, of which our backward passes know nothing."""
    if torch.compiler.is_compiling():
        return False
    return transforms_active()


def plain_only() -> bool:
    """Whether nothing but PyTorch's own operators will do: torch.export, torch.func, torch.jit.trace."""
    if torch.compiler.is_compiling():
        return exporting()
    return transforming() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]


def recording() -> bool:
    """Whether operators are looked at on their way: by torch.compile, or a mode such as that of fake tensors.

    Then all that we do must be operators, ours or PyTorch's.
    """
    return torch.compiler.is_compiling() or dispatch_mode_active()


def visible(tensor: Tensor) -> bool:
    """Whether Python may look at the numbers: it would stop a device, and has nothing to see in a graph."""
    return not recording() and not plain_only() and tensor.device.type == "cpu" and ordinary(tensor)


def ordinary(tensor: Tensor) -> bool:
    """Whether there is memory behind the tensor that holds its numbers."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_neg()
        and not is_zero_tensor(tensor)
    )
