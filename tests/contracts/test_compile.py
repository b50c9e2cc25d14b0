"""Every member compiled is the same member."""

import pytest
import torch
from torch import nn

from .members import ASSEMBLIES, Assembly, Sizes, multihead

every_member = pytest.mark.parametrize("assembly", ASSEMBLIES, ids=str)


class Outputs(nn.Module):
    """Context and weights as a tuple of tensors, which is what compiled and exported programs return."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, query, keys, values, mask):
        reading = self.attention(query, keys, values, mask=mask)
        return reading.context, reading.weights


def setup(assembly: Assembly, heads=False):
    sizes = Sizes(queries=2)  # a stateful score is unrolled, and compiling is what takes the time here
    sizes = sizes if heads else assembly.sizes(sizes)
    module = multihead(assembly, sizes) if heads else assembly.attention(sizes)
    x = assembly.inputs(sizes)
    return Outputs(module), (x.query, x.keys, x.values, x.mask)


@pytest.fixture(autouse=True)
def _forget_compiled_code():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def gradients(outputs, parameters):
    context, weights = outputs
    total = context.square().sum() + weights.square().sum()
    if not total.requires_grad:
        return []
    return [g for g in torch.autograd.grad(total, parameters, allow_unused=True) if g is not None]


@every_member
def test_compiled_is_eager(assembly):
    module, given = setup(assembly)
    given[2].requires_grad_(given[2].is_floating_point())
    leaves = [given[0].requires_grad_(), given[1].requires_grad_(), *module.parameters()]
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    eager, ours = module(*given), compiled(*given)
    torch.testing.assert_close(ours, eager)
    if assembly.differentiable:
        torch.testing.assert_close(gradients(ours, leaves), gradients(eager, leaves))


@pytest.mark.parametrize("assembly", [a for a in ASSEMBLIES if a.works_in_heads], ids=str)
def test_compiled_is_eager_in_heads(assembly):
    module, given = setup(assembly, heads=True)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(*given), module(*given))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["additive", "scaled_dot"])
def test_inductor_is_eager(name):
    module, given = setup(Assembly("score", name))
    compiled = torch.compile(module, fullgraph=True)
    torch.testing.assert_close(compiled(*given), module(*given))


def test_compiled_keeps_empty_rows():
    module, (query, keys, values, mask) = setup(Assembly("score", "scaled_dot"))
    mask = mask.clone()
    mask[0] = False
    context, weights = torch.compile(module, fullgraph=True, backend="aot_eager")(query, keys, values, mask)
    assert (context[0] == 0).all()
    assert (weights[0] == 0).all()
