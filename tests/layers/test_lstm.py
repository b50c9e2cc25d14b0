import pytest
import torch
from torch import nn

from saccade.layers import LSTMCell
from saccade.layers.lstm import lstm_sequence, lstm_sequence_reference
from tests.oracles.recurrent import lstm

STEPS, BATCH, SIZE = 5, 3, 7


def inputs(*lead):
    torch.manual_seed(3)
    shapes = [(STEPS, *lead, BATCH, 4 * SIZE), (*lead, BATCH, SIZE), (*lead, BATCH, SIZE), (*lead, 4 * SIZE, SIZE)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def test_sequence_is_the_equation():
    projected, hidden, cell, weight = inputs()
    states, cells = lstm_sequence(projected, hidden, cell, weight)
    for row in range(BATCH):
        h, c = hidden[row], cell[row]
        for t in range(STEPS):
            h, c = lstm(*projected[t, row].chunk(4), h, c, *weight.chunk(4))
            torch.testing.assert_close(states[t, row], h)
            torch.testing.assert_close(cells[t, row], c)


def test_equals_pytorchs():
    torch.manual_seed(0)
    theirs = nn.LSTM(5, SIZE, batch_first=True).double()
    ours = LSTMCell(hidden_dim=SIZE).double()
    with torch.no_grad():
        ours.weight.copy_(theirs.weight_hh_l0)
        ours.bias.zero_()
    x = torch.randn(BATCH, STEPS, 5, dtype=torch.float64)
    states, cells = ours(nn.functional.linear(x, theirs.weight_ih_l0, theirs.bias_ih_l0 + theirs.bias_hh_l0))
    outputs, (_, final) = theirs(x)
    torch.testing.assert_close(states, outputs)
    torch.testing.assert_close(cells[:, -1], final[0])


@pytest.mark.parametrize("lead", [(), (2,)])
def test_sequence_has_the_gradients_of_its_reference(lead):
    tensors = inputs(*lead)
    fast, plain = torch.stack(lstm_sequence(*tensors)), torch.stack(lstm_sequence_reference(*tensors))
    torch.testing.assert_close(fast, plain)
    grad = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad(fast, tensors, grad), torch.autograd.grad(plain, tensors, grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_gradcheck():
    torch.manual_seed(1)
    shapes = [(2, 3, 8), (3, 2), (3, 2), (8, 2)]
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lstm_sequence, tensors)


def test_steps_equal_the_sequence_with_the_forget_bias():
    torch.manual_seed(2)
    cell = LSTMCell(hidden_dim=SIZE, forget_bias=2.0).double()
    projected = torch.randn(BATCH, STEPS, 4 * SIZE, dtype=torch.float64)
    states, cells = cell(projected)
    state = cell.zeros(BATCH, like=projected)
    for t in range(STEPS):
        state = cell.step(projected[:, t], state)
        torch.testing.assert_close(state, (states[:, t], cells[:, t]))


def test_a_new_cell_remembers():
    cell = LSTMCell(hidden_dim=SIZE)
    zeros = torch.zeros(1, SIZE)
    _, kept = cell.step(torch.zeros(1, 4 * SIZE), (zeros, zeros + 1))
    torch.testing.assert_close(kept, torch.full((1, SIZE), 1.0).sigmoid())
