"""Tensors that are split among the processes of a training (PyTorch's `DTensor`), and whole ones made from them."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether other processes hold parts of a tensor."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """The tensor with the parts of all processes; all of them must ask for it, in the same order."""
    if not is_sharded(tensor):
        return tensor
    full: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]
    return full


def placed(tensor: Tensor, like: Any) -> Tensor:
    """This process's part of a whole tensor, if `like` is sharded; the tensor itself if not, or if it is as well."""
    if not is_sharded(like) or is_sharded(tensor):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    value = tensor.to(like.device, like.dtype)
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)  # all have read the same
