"""What a new PyTorch breaks: each private name is checked alone, so that the failing test names it."""

import ast
import importlib
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

from saccade.kernels import private_torch

PACKAGE = Path(private_torch.__file__).resolve().parent.parent
NAMES = [
    "torch._C._are_functorch_transforms_active",
    "torch._C._len_torch_dispatch_stack",
    "torch._C._current_graph_task_id",
    "torch._C._functorch.is_functorch_wrapped_tensor",
    "torch._C._functorch.peek_interpreter_stack",
    "torch._C.DisableTorchFunction",
    "torch._C._len_torch_function_stack",
    "torch._C._disabled_torch_function_impl",
    "torch.autograd.forward_ad._current_level",
    "torch.overrides._get_current_function_mode_stack",
    "torch.overrides._push_mode",
    "torch.overrides._pop_mode",
    "torch.Tensor._is_zerotensor",
    "torch.Tensor._version",
    "torch._foreach_mul_",
    "torch._dynamo",
    "torch._dynamo.eval_frame._stance",
    "torch._dynamo.eval_frame.DynamoStance",
    "torch._C._dynamo.eval_frame.get_eval_frame_callback",
    "torch._C._dispatch_tls_set_dispatch_key_included",
    "torch._C._dispatch_tls_set_dispatch_key_excluded",
    "torch._C._dispatch_tls_is_dispatch_key_excluded",
    "torch._C._parse_dispatch_key",
    "torch._ops._higher_order_ops",
    "torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS",
    "torch._higher_order_ops.scan",
    "torch._inductor.aoti_compile_and_package",
    "torch._inductor.aoti_load_package",
    *(
        ".".join(name)
        for name in (private_torch.NATIVE_MULTI_HEAD, private_torch.NATIVE_ENCODER_LAYER, private_torch.FLEX_OPERATOR)
    ),
]


@pytest.mark.parametrize("name", NAMES)
def test_it_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    if module == "torch.Tensor":
        assert hasattr(torch.Tensor, attribute)
    else:
        home = importlib.import_module(module)
        assert hasattr(home, attribute) or importlib.import_module(name)
    assert attribute in (private_torch.__doc__ or ""), f"the docstring of private_torch.py does not name {name}"


def private_names(tree: ast.AST) -> set[str]:
    """Dotted names below torch with a part that starts with an underscore, as attributes or imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name for name in names if re.fullmatch(r"torch\.[\w.]+", name) and "._" in name}
    return found


def test_no_other_file_uses_private_names() -> None:
    used = {path: private_names(ast.parse(path.read_text())) for path in PACKAGE.rglob("*.py")}
    assert used.pop(PACKAGE / "kernels" / "private_torch.py")
    assert {str(path.relative_to(PACKAGE)): names for path, names in used.items() if names} == {}


def test_transforms_are_noticed() -> None:
    seen = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append((private_torch.transforms_active(), private_torch.inside_transform(x)))
        return x

    look(torch.ones(2))
    torch.vmap(look)(torch.ones(2))
    torch.func.grad(look)(torch.ones(()))
    with forward_ad.dual_level():
        look(torch.ones(2))
    assert seen == [(False, False), (True, True), (True, True), (True, False)]


def test_dispatch_modes_are_noticed() -> None:
    assert not private_torch.dispatch_mode_active()
    with FakeTensorMode():
        assert private_torch.dispatch_mode_active()


def test_zero_tensors_are_noticed() -> None:
    assert not private_torch.is_zero_tensor(torch.zeros(2))
    assert private_torch.is_zero_tensor(torch._efficientzerotensor(2))


def test_versions_count_changes_in_place() -> None:
    tensor = torch.zeros(2)
    before = private_torch.version(tensor)
    tensor[:1].add_(1)  # a view has the same memory
    assert private_torch.version(tensor) > before >= 0
    with torch.inference_mode():
        assert private_torch.version(torch.zeros(2)) == -1


def test_lengths_are_those_of_ordinary_tensors() -> None:
    x = torch.zeros(1, 2, 3, 4)
    written = x.clone().add_(1)
    nested = torch.nested.nested_tensor([torch.zeros(2, 3, 4)])
    assert private_torch.lengths(x, x[:, :, :2], None) == (3, 2)
    assert private_torch.lengths(x, x, torch.zeros(3, 3)) == (3, 3)
    for other in (written, nested, x[0], nn.Parameter(x), x.clone().requires_grad_()):
        assert private_torch.lengths(other, x, None) is None
    for other in (written, nested, nn.Parameter(x), x[0, 0], x[None]):
        assert private_torch.lengths(x, other, None) is None
    for mask in (written, nn.Parameter(x)):
        assert private_torch.lengths(x, x, mask) is None
    with torch.inference_mode():
        assert private_torch.lengths(torch.zeros(1, 2, 3, 4), x, None) is None


def test_versions_of_several_tensors() -> None:
    assert private_torch.versions({"a": torch.ones(2), "b": torch.ones(2).add_(1)}) == {"a": 0, "b": 1}
    with torch.inference_mode():
        assert private_torch.versions({"a": torch.ones(2)}) == {"a": -1}


def test_lengths_are_those_of_undisturbed_calls() -> None:
    def found() -> bool:
        return private_torch.lengths(x, x, None) is not None

    x, leaf = torch.zeros(1, 2, 3, 4), torch.ones(2, requires_grad=True)
    seen = [found()]
    leaf.register_hook(lambda _: seen.append(found()))
    leaf.sum().backward()
    with TorchFunctionMode():
        seen.append(found())
    torch.func.vmap(lambda row: seen.append(found()) or row)(torch.ones(2))
    assert seen == [True, False, False, False]
    assert found()


def test_backward_passes_are_noticed() -> None:
    seen = [private_torch.in_backward()]
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda _: seen.append(private_torch.in_backward()))
    x.sum().backward()
    seen.append(private_torch.in_backward())
    assert seen == [False, True, False]


@torch.no_grad()
def test_packed_weights_are_the_same_layer() -> None:
    layer, inputs = nn.Linear(13, 17), torch.randn(7, 13)
    packed = private_torch.pack_weight(layer.weight)
    if packed is None:
        pytest.skip("this PyTorch was built without oneDNN")
    for gelu in (False, True):
        expected = nn.functional.gelu(layer(inputs)) if gelu else layer(inputs)
        torch.testing.assert_close(private_torch.packed_linear(inputs, packed, layer.bias, gelu=gelu), expected)
    assert private_torch.pack_weight(layer.weight.double()) is None


class Noting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_modes_can_be_added_below_others() -> None:
    below, above = Noting(), Noting()
    with above:
        private_torch.set_function_modes([below, *private_torch.function_modes()])
        assert private_torch.function_modes() == [below, above]
        torch.add(torch.ones(2), 1)
        private_torch.set_function_modes([above])
    assert private_torch.function_modes() == []
    assert below.count == above.count > 0
    with below, private_torch.without_function_modes():
        count = below.count
        torch.add(torch.ones(2), 1)
    assert below.count == count


def test_tensor_classes_that_override_functions() -> None:
    class Overriding(torch.Tensor):
        pass

    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert private_torch.overrides_functions(torch.ones(2).as_subclass(Overriding))
    for value in (torch.ones(2).as_subclass(Plain), torch.ones(2), nn.Parameter(torch.ones(2)), None):
        assert not private_torch.overrides_functions(value)


def test_children_and_scaling() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    assert dict(private_torch.children(model)) == dict(model.named_children())
    tensors = [torch.ones(2), torch.ones(3)]
    private_torch.scale_all(tensors, 0.5)
    assert [tensor.tolist() for tensor in tensors] == [[0.5] * 2, [0.5] * 3]
