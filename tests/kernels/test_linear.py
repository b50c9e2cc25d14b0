"""Packed linear layers compute what the plain ones compute."""

import copy
import math
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from saccade.decoders.heads import LinearHead
from saccade.kernels import native
from saccade.kernels.linear import Packed, PackedLayers, quantise, quantised_linear_reference, top_of_linear
from saccade.kernels.top_log_probs import top_log_probs_reference
from saccade.layers.quantised import QuantisedLinear

pytestmark = pytest.mark.skipif(native.library() is None, reason="needs a C compiler")
SHAPES = [(1, 1, 1), (2, 3, 31), (17, 19, 67), (251, 37, 32), (13, 128, 97)]


def whole_numbers() -> bool:
    return native.count("linear_whole", torch.float32) == 1


@pytest.mark.parametrize(("rows", "features", "out"), SHAPES)
@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
def test_float(rows, features, out, activation):
    inputs, weight, bias = torch.randn(rows, features), torch.randn(out, features), torch.randn(out)
    wanted = F.linear(inputs, weight, bias)
    if activation is not None:
        wanted = getattr(F, activation)(wanted)
    torch.testing.assert_close(Packed(weight, bias)(inputs, activation=activation), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "features", "out"), SHAPES)
def test_whole_numbers(rows, features, out):
    if not whole_numbers():
        pytest.skip("the processor has no VNNI")
    inputs, bias = torch.randn(rows, features), torch.randn(out)
    inputs[0] = 0
    weight, scales = quantise(torch.randn(out, features))
    wanted = quantised_linear_reference(inputs, weight, scales, bias)
    torch.testing.assert_close(Packed(weight, bias, scales)(inputs), wanted, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_strided_inputs_and_nan():
    layer = QuantisedLinear.of(nn.Linear(37, 29))
    several = torch.randn(11, 5, 74)
    for inputs in (several[:, -1, :37], several[:, :3, 1::2], torch.randn(37, 13).t()):
        wanted = quantised_linear_reference(inputs, layer.weight, layer.scales, layer.bias)
        torch.testing.assert_close(layer(inputs), wanted, rtol=1e-5, atol=1e-5)
    for place in (3, 36):  # in a whole vector of the kernel, and in the rest
        inputs = torch.randn(2, 37)
        inputs[0, place] = math.nan
        assert layer(inputs)[0].isnan().all()
        assert layer(inputs)[1].isfinite().all()


def test_quantised_weights_are_close():
    weight = torch.randn(29, 53)
    weight[3] = 0
    whole, scales = quantise(weight)
    assert whole.dtype is torch.int8
    assert int(whole.abs().max()) == 127
    error = (whole * scales[:, None] - weight).abs()
    assert (error <= scales[:, None] / 2 + 1e-6).all()


@pytest.mark.parametrize(("rows", "vocab", "count"), [(17, 3, 1), (5, 13, 11), (101, 1031, 10), (1, 600, 5)])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_top(rows, vocab, count, bias):
    layer, features = nn.Linear(19, vocab, bias=bias), torch.randn(rows, 19)
    without = torch.tensor([0, 1])
    values, ids = top_of_linear(features, layer, count, without, layers=PackedLayers())
    wanted = top_log_probs_reference(layer(features), count, without)
    torch.testing.assert_close(values, wanted[0], rtol=1e-5, atol=1e-5)
    assert (ids[values > -math.inf] == wanted[1][values > -math.inf]).all()


@torch.no_grad()
def test_top_of_equal_ones_and_of_too_few():
    layer = nn.Linear(3, 29, bias=False)
    layer.weight.zero_()
    values, ids = top_of_linear(torch.randn(2, 3), layer, 5, torch.tensor([2]), layers=PackedLayers())
    assert ids.tolist() == [[0, 1, 3, 4, 5]] * 2
    torch.testing.assert_close(values, torch.full((2, 5), -math.log(29)))
    assert top_of_linear(torch.randn(2, 3), layer, 31, torch.tensor([2]), layers=PackedLayers())[0].shape == (2, 29)


@torch.no_grad()
def test_top_of_what_is_not_a_number():
    layer, features = nn.Linear(3, 1031), torch.randn(2, 3)
    features[1, 0] = math.nan
    values, _ = top_of_linear(features, layer, 3, torch.tensor([0]), layers=PackedLayers())
    assert values[0].isfinite().all()
    assert values[1].isnan().all()


@torch.no_grad()
def test_packed_again_after_a_change():
    layer, inputs, layers = nn.Linear(5, 7), torch.randn(3, 5), PackedLayers()
    first = layers.of(layer)
    assert layers.of(layer) is first
    layer.bias.add_(1)
    again = layers.of(layer)
    assert again is not first
    torch.testing.assert_close(again(inputs), layer(inputs))
    layer.weight = nn.Parameter(torch.randn(7, 5))
    torch.testing.assert_close(layers.of(layer)(inputs), layer(inputs))
    assert layers.of(nn.Linear(5, 7).double()) is None


@torch.no_grad()
def test_copies_and_pickles_contain_no_packed_layers():
    head, features = LinearHead(input_dim=5, vocab_size=7), torch.randn(3, 5)
    wanted = head.best(features, 2, torch.tensor([0]))
    plain = pickle.dumps(LinearHead(input_dim=5, vocab_size=7))
    assert len(pickle.dumps(head)) == len(plain)
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        for one, two in zip(other.best(features, 2, torch.tensor([0])), wanted, strict=True):
            assert torch.equal(one, two)
        assert other.packed.of(other.proj) is not head.packed.of(head.proj)
