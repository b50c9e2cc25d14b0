import pytest
import torch

from saccade.kernels import native, rcnn
from saccade.layers import RCNNCell, RecurrentLayer
from saccade.layers.rcnn import rcnn_sequence, rcnn_sequence_reference
from tests.oracles.recurrent import run_rcnn

STEPS, BATCH, SIZE = 5, 3, 7


def inputs(*lead, size=SIZE):
    torch.manual_seed(3)
    shapes = [(STEPS, *lead, BATCH, 3 * size), *[(*lead, BATCH, size)] * 3, (*lead, size, size), (*lead, 1, size)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def run(sequence, projected, hidden, single, pair, weight, bias, kept=None):
    return torch.stack(sequence(projected, (hidden, single, pair), weight, bias, kept))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_layer_is_the_equation_over_the_real_words(bidirectional):
    torch.manual_seed(0)
    layer = RecurrentLayer(input_dim=2, hidden_dim=SIZE, cell="rcnn", bidirectional=bidirectional).double()
    for cell in layer.cells:
        torch.nn.init.normal_(cell.bias)
    words = torch.randn(BATCH, STEPS, 2, dtype=torch.float64)
    lengths = (5, 2, 0)
    outputs, final = layer(words, torch.arange(STEPS) < torch.tensor(lengths)[:, None])
    for row, length in enumerate(lengths):
        for direction, cell in enumerate(layer.cells):
            weights = layer.input_proj.weight.chunk(len(layer.cells))[direction].chunk(3)
            biases = layer.input_proj.bias.chunk(len(layer.cells))[direction].chunk(3)
            read = words[row, :length].flip(0) if direction else words[row, :length]
            pairs = [each for pair in zip(weights, biases, strict=True) for each in pair]
            states = run_rcnn(read, *pairs, cell.weight, cell.bias)
            part = slice(SIZE * direction, SIZE * (direction + 1))
            for place, (hidden, _, _) in enumerate(states):
                at = length - 1 - place if direction else place
                torch.testing.assert_close(outputs[row, at, part], hidden)
            last = states[-1] if states else [torch.zeros(SIZE, dtype=torch.float64)] * 3
            for found, wanted in zip(final, last, strict=True):
                torch.testing.assert_close(found[row, part], wanted)


@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("size", [SIZE, 24])  # in PyTorch, and in C, which needs whole vectors
def test_sequence_has_the_gradients_of_its_reference(lead, gated, size):
    tensors = inputs(*lead, size=size)
    assert rcnn.usable(tensors[0], tensors[1], tensors[4]) == (size != SIZE and native.library() is not None)
    if gated:
        tensors.append(torch.rand(STEPS, *lead, BATCH, 1, dtype=torch.float64, requires_grad=True))
    fast, plain = run(rcnn_sequence, *tensors), run(rcnn_sequence_reference, *tensors)
    torch.testing.assert_close(fast, plain)
    grad = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad(fast, tensors, grad), torch.autograd.grad(plain, tensors, grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_in_single_precision_and_with_hard_decisions():
    tensors = [each.detach().float().requires_grad_() for each in inputs(size=32)]
    hard = torch.tensor([1.0, 0.0, 1.0]).repeat(STEPS, 1).unsqueeze(-1).requires_grad_()
    fast, plain = run(rcnn_sequence, *tensors, hard), run(rcnn_sequence_reference, *tensors, hard)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    assert torch.equal(fast[0, :, 1], tensors[1][1].expand(STEPS, -1))  # what is not picked changes nothing
    grad = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad(fast, [*tensors, hard], grad),
        torch.autograd.grad(plain, [*tensors, hard], grad),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("more", [[], [(2, 3, 1)]])
def test_gradcheck(more):
    torch.manual_seed(1)
    shapes = [(2, 3, 6), (3, 2), (3, 2), (3, 2), (2, 2), (2,), *more]
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda *given: run(rcnn_sequence, *given), tensors)


def test_steps_equal_the_sequence():
    torch.manual_seed(2)
    cell = RCNNCell(hidden_dim=SIZE).double()
    projected = torch.randn(BATCH, STEPS, 3 * SIZE, dtype=torch.float64)
    states = cell(projected)
    state = cell.zeros(BATCH, like=projected)
    for t in range(STEPS):
        state = cell.step(projected[:, t], state)
        torch.testing.assert_close(state, tuple(each[:, t] for each in states))


def test_no_words():
    cell = RCNNCell(hidden_dim=SIZE)
    assert [each.shape for each in cell(torch.zeros(BATCH, 0, 3 * SIZE))] == [(BATCH, 0, SIZE)] * 3


def test_shapes_that_broadcast_are_left_to_pytorch():
    tensors = [each.detach() for each in inputs(2, size=24)]
    shared = [*tensors[:4], tensors[4][0], tensors[5]]
    assert not rcnn.usable(shared[0], shared[1], shared[4])
    torch.testing.assert_close(run(rcnn_sequence, *shared), run(rcnn_sequence_reference, *shared))
