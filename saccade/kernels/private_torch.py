"""The only file that uses PyTorch's private interface, because no public one does the same.

| what | used for |
| --- | --- |
| `torch._C._are_functorch_transforms_active`, `forward_ad._current_level` | whether torch.func or forward mode runs |
| `torch._C._len_torch_dispatch_stack` | whether a dispatch mode, such as fake tensors, is active |
| `Tensor._is_zerotensor` | whether a tensor is a symbolic zero, without memory |
| `Tensor._version` | whether a tensor was changed in place |
| `torch._C._current_graph_task_id` | whether this thread runs a backward pass |
| `torch._C._functorch.is_functorch_wrapped_tensor`, `peek_interpreter_stack` | whether a tensor is inside torch.func |
| `torch._C.DisableTorchFunction` | computing without function modes |
| `torch._C._len_torch_function_stack` | how many function modes are active |
| `torch._C._disabled_torch_function_impl` | whether a tensor subclass overrides functions |
| `torch.overrides._get_current_function_mode_stack`, `_push_mode`, `_pop_mode` | adding a mode below others |
| `nn.Module._forward_hooks`, `_forward_pre_hooks` | whether something watches a module, and watching it |
| `nn.Module._modules` | walking a model's modules faster than `named_children` |
| `torch._dynamo.eval_frame._stance`, `DynamoStance`, `get_eval_frame_callback` | running uncompiled code |
| `torch._C._dispatch_tls_set_dispatch_key_included`, `_parse_dispatch_key`, `Library._destroy` | replacing operators |
| `torch._C._dispatch_tls_is_dispatch_key_included` | whether that has ended early |
| `torch._C._dispatch_tls_set_dispatch_key_excluded`, `_dispatch_tls_is_dispatch_key_excluded` | pausing that |
| `torch._ops._higher_order_ops`, `_HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS` | leaving the others alone |
| `torch._foreach_mul_` | scaling all gradients by one kernel |
| `torch.ops.mkldnn._reorder_linear_weight`, `_linear_pointwise` | linear layers with weights packed beforehand |
| `torch._native_multi_head_attention`, `torch._transformer_encoder_layer_fwd` | fast paths that `record` replaces |
| `torch._inductor.aoti_compile_and_package`, `aoti_load_package` | exported programs as native code |
| `torch._higher_order_ops.scan` | loops over any number of steps in an exported program |
| `torch.ops.aten._softmax` | a softmax that is called directly |
| `flex_attention_hop` in `torch.nn.attention.flex_attention` | the operator that `record` replaces |

`tests/kernels/test_private_torch.py` checks each of them and names the ones that a new PyTorch breaks.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

NATIVE_MULTI_HEAD = ("torch", "_native_multi_head_attention")
NATIVE_ENCODER_LAYER = ("torch", "_transformer_encoder_layer_fwd")
FLEX_OPERATOR = ("torch.nn.attention.flex_attention", "flex_attention_hop")

SOFTMAX_KERNEL = torch.ops.aten._softmax
"""What computes every softmax."""

BINDINGS = "torch._C"
"""PyTorch's compiled modules. They compare functions by identity, so nothing in them may be replaced."""

COMPILER = "torch._dynamo"
"""The module of torch.compile: if it was never imported, nothing is compiled."""

WATCHING = "TESTING_ONLY_GenericMode"
"""A dispatch key above all others, which no tensor has and PyTorch itself does not use."""
REPLACED = "replaced_by_saccade"
"""The attribute of `torch.library` with the operators that are replaced for this key, of which there can be one set."""

function_mode_count = torch._C._len_torch_function_stack
graph_task = torch._C._current_graph_task_id
functorch_active = torch._C._are_functorch_transforms_active
interpreter_stack = torch._C._functorch.peek_interpreter_stack

without_function_modes = torch._C.DisableTorchFunction
"""A context in which no function mode and no tensor subclass sees the functions that are called."""


def transforms_active() -> bool:
    """Whether torch.func or forward-mode differentiation is active."""
    return functorch_active() or forward_ad._current_level >= 0


def dispatch_mode_active() -> bool:
    """Whether a dispatch mode, such as that of fake tensors, sees every operator."""
    return torch._C._len_torch_dispatch_stack() > 0


def is_zero_tensor(tensor: Tensor) -> bool:
    """Whether a tensor is a symbolic zero, which has no memory."""
    return tensor._is_zerotensor()


def version(tensor: Tensor) -> int:
    """A number that grows whenever the tensor is changed in place; -1 for inference tensors, which have none."""
    try:
        return tensor._version
    except RuntimeError:
        return -1


def lengths(query: Tensor, key: Tensor, mask: Tensor | None) -> tuple[int, int] | None:
    """The numbers of queries and keys (batch, heads, length, dim) of an ordinary call; None for any other.

    Its tensors need no gradient and were never changed in place, and this thread runs no backward pass, no torch.func
    transform and no function mode. All this is asked together, since each function more has to be fetched into the
    processor's caches.
    """
    if graph_task() != -1 or functorch_active() or function_mode_count():
        return None
    if type(query) is not Tensor or type(key) is not Tensor or query.requires_grad or key.requires_grad:
        return None
    if mask is not None and (type(mask) is not Tensor or mask.requires_grad):
        return None
    try:
        if query._version or key._version or (mask is not None and mask._version):
            return None
        sizes, others = query.shape, key.shape
        return (sizes[2], others[2]) if len(sizes) == len(others) == 4 else None
    except RuntimeError:  # inference tensors have no versions, and nested ones have no shape
        return None


def versions(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """The version of each tensor."""
    try:
        return {name: tensor._version for name, tensor in tensors.items()}
    except RuntimeError:
        return {name: version(tensor) for name, tensor in tensors.items()}


def in_backward() -> bool:
    """Whether this thread is running a backward pass."""
    return graph_task() != -1


def transforming() -> bool:
    """Whether a torch.func transform runs."""
    return interpreter_stack() is not None


def inside_transform(tensor: Tensor) -> bool:
    """Whether a tensor is one of those that a torch.func transform, such as vmap, works on."""
    return transforming() and torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def overrides_functions(value: Any) -> bool:
    """Whether a value is a tensor of a class that implements PyTorch's functions itself."""
    if not isinstance(value, Tensor) or type(value) in (Tensor, nn.Parameter):
        return False
    return type(value).__torch_function__ is not torch._C._disabled_torch_function_impl


def function_modes() -> list[TorchFunctionMode]:
    """The active function modes, the outermost first."""
    return list(_get_current_function_mode_stack())


def set_function_modes(modes: Sequence[TorchFunctionMode]) -> None:
    """Replaces the active function modes."""
    for _ in _get_current_function_mode_stack():
        _pop_mode()
    for mode in modes:
        _push_mode(mode)


def replace_operators(kernels: Mapping[str, Callable[..., Any]]) -> None:
    """Replaces operators of `aten` in the threads that call `set_watching(True)`.

    The replacements are called however the operator is: by any name, method or reference. They call the original
    between `set_paused(True)` and `set_paused(False)`. Other operators and other threads are not slowed down.
    """
    for library in getattr(torch.library, REPLACED, ()):  # of a package that was imported before
        library._destroy()
    others = torch.library.Library("_", "IMPL", WATCHING)
    others.fallback(torch.library.fallthrough_kernel, WATCHING)
    replaced = torch.library.Library("aten", "IMPL", WATCHING)
    for name, kernel in kernels.items():
        replaced.impl(name, kernel, WATCHING)
    # Operators that take functions, such as those of FlexAttention, are dispatched in Python.
    if _WATCHING_KEY not in torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS:
        torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(_WATCHING_KEY)
        for operator in torch._ops._higher_order_ops.values():
            operator.fallthrough(_WATCHING_KEY)
    setattr(torch.library, REPLACED, (others, replaced))  # what they contain ends with them


_WATCHING_KEY: Any = torch._C._parse_dispatch_key(WATCHING)
set_watching: Callable[[bool], None] = partial(torch._C._dispatch_tls_set_dispatch_key_included, _WATCHING_KEY)
"""Whether this thread calls replaced operators."""
is_watching: Callable[[], bool] = partial(torch._C._dispatch_tls_is_dispatch_key_included, _WATCHING_KEY)
set_paused: Callable[[bool], None] = partial(torch._C._dispatch_tls_set_dispatch_key_excluded, _WATCHING_KEY)
"""Whether it calls the original ones for a while."""
is_paused: Callable[[], bool] = partial(torch._C._dispatch_tls_is_dispatch_key_excluded, _WATCHING_KEY)


def run_uncompiled() -> Any:
    """As `torch.compiler.set_stance("force_eager")`, in a tenth of its time; `restore_stance` takes what it returns."""
    frames, running, eager = _compiler()
    if running() not in (False, None):
        raise RuntimeError("Code that torch.compile is running cannot be recorded: record outside of it.")
    before, frames._stance = frames._stance, eager
    return before


def restore_stance(stance: Any) -> None:
    """Sets the compiler's stance to what it was."""
    _compiler()[0]._stance = stance


@cache
def _compiler() -> tuple[Any, Callable[[], Any], Any]:
    """What holds the compiler's stance, what says whether compiled code runs, and the stance that compiles nothing."""
    frames: Any = importlib.import_module(f"{COMPILER}.eval_frame")
    return frames, torch._C._dynamo.eval_frame.get_eval_frame_callback, frames.DynamoStance("force_eager")


CHILDREN = "_modules"
"""The attribute of a module that holds those directly inside it, by name."""


def children(module: nn.Module) -> Mapping[str, nn.Module | None]:
    """The modules directly inside a module, by name."""
    return module._modules


def scan(body: Any, state: Any, inputs: Any) -> Any:
    """`body(state, row) -> state, output` over the rows of inputs, as one operator: the last state, all outputs."""
    from torch._higher_order_ops.scan import scan as operator  # which takes a while to import

    return operator(body, state, inputs, dim=0)


def add_pre_hook(module: nn.Module, key: int, hook: Callable[[nn.Module, Any], None]) -> None:
    """As `register_forward_pre_hook`, in a tenth of its time; `remove_pre_hook` removes it by its key."""
    module._forward_pre_hooks[key] = hook


def remove_pre_hook(module: nn.Module, key: int) -> None:
    """Removes the hook of `add_pre_hook`, if it is still there."""
    module._forward_pre_hooks.pop(key, None)


def hooked(module: nn.Module) -> bool:
    """Whether the module or one inside it has hooks that its forward pass calls."""
    return any(each._forward_hooks or each._forward_pre_hooks for each in module.modules())


def compile_package(program: torch.export.ExportedProgram, path: str | os.PathLike[str]) -> None:
    """Compiles an exported program to native code, and writes it as a package that needs no compiler."""
    from torch._inductor import aoti_compile_and_package

    aoti_compile_and_package(program, package_path=str(path))


def load_package(path: str | os.PathLike[str]) -> Any:
    """What `compile_package` wrote, to be called with the program's inputs."""
    from torch._inductor import aoti_load_package

    return aoti_load_package(str(path))


def scale_all(tensors: Sequence[Tensor], factor: float) -> None:
    """Multiplies tensors in place by one factor."""
    torch._foreach_mul_(list(tensors), factor)


def pack_weight(weight: Tensor) -> Tensor | None:
    """The weight of a linear layer in the order that suits the processor; None where PyTorch cannot do that."""
    found = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)
    known = found is not None and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if not known or not torch.backends.mkldnn.is_available() or weight.device.type != "cpu":
        return None
    if weight.dtype is not torch.float32:
        return None
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    return packed


def packed_linear(inputs: Tensor, packed: Tensor, bias: Tensor, *, gelu: bool) -> Tensor:
    """`F.linear` with a packed weight, and GELU in the same pass over the outputs if asked; without gradients."""
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(
        inputs, packed, bias, "gelu" if gelu else "none", [], "none" if gelu else ""
    )
    return outputs
