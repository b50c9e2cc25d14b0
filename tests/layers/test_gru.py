import pytest
import torch
from torch import nn

from saccade.layers import GRUCell
from saccade.layers.gru import gru_sequence, gru_sequence_reference
from tests.oracles.recurrent import gru_before

STEPS, BATCH, SIZE = 5, 3, 7


def inputs(*lead):
    torch.manual_seed(3)
    projected = torch.randn(STEPS, *lead, BATCH, 3 * SIZE, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(*lead, BATCH, SIZE, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(*lead, 3 * SIZE, SIZE, dtype=torch.float64, requires_grad=True)
    inner = torch.randn(*lead, BATCH, SIZE, dtype=torch.float64, requires_grad=True)
    return projected, hidden, weight, inner


def test_reset_before_is_the_papers_equation():
    projected, hidden, weight, _ = inputs()
    states = gru_sequence(projected, hidden, weight)
    for row in range(BATCH):
        h = hidden[row]
        for t in range(STEPS):
            h = gru_before(*projected[t, row].chunk(3), h, *weight.chunk(3))
            torch.testing.assert_close(states[t, row], h)


def test_reset_after_is_pytorchs():
    torch.manual_seed(0)
    theirs = nn.GRU(5, SIZE, batch_first=True).double()
    ours = GRUCell(hidden_dim=SIZE, reset="after").double()
    with torch.no_grad():
        ours.weight.copy_(theirs.weight_hh_l0)
        ours.bias.copy_(theirs.bias_hh_l0[2 * SIZE :])
        bias = theirs.bias_ih_l0.clone()
        bias[: 2 * SIZE] += theirs.bias_hh_l0[: 2 * SIZE]
    x = torch.randn(BATCH, STEPS, 5, dtype=torch.float64)
    (states,) = ours(nn.functional.linear(x, theirs.weight_ih_l0, bias))
    torch.testing.assert_close(states, theirs(x)[0])


def test_the_two_forms_differ_and_agree_where_the_reset_gate_is_open():
    projected, hidden, weight, _ = inputs()
    zero = torch.zeros(SIZE, dtype=torch.float64)
    assert not torch.allclose(gru_sequence(projected, hidden, weight), gru_sequence(projected, hidden, weight, zero))
    opened = projected.detach().clone()
    opened[..., :SIZE] = 1e4
    torch.testing.assert_close(gru_sequence(opened, hidden, weight), gru_sequence(opened, hidden, weight, zero))


@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("after", [False, True])
def test_sequence_has_the_values_and_gradients_of_its_reference(lead, after):
    *tensors, inner = inputs(*lead)
    tensors = [*tensors, inner] if after else tensors
    fast, plain = gru_sequence(*tensors), gru_sequence_reference(*tensors)
    torch.testing.assert_close(fast, plain)
    grad = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad(fast, tensors, grad), torch.autograd.grad(plain, tensors, grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("after", [False, True])
def test_gradcheck(after):
    torch.manual_seed(1)
    shapes = [(2, 3, 6), (3, 2), (6, 2), (3, 2)][: 4 if after else 3]
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(gru_sequence, tensors)


@pytest.mark.parametrize("reset", ["before", "after"])
def test_steps_equal_the_sequence(reset):
    torch.manual_seed(2)
    cell = GRUCell(hidden_dim=SIZE, reset=reset).double()
    projected = torch.randn(BATCH, STEPS, 3 * SIZE, dtype=torch.float64)
    (states,) = cell(projected)
    state = cell.zeros(BATCH, like=projected)
    for t in range(STEPS):
        state = cell.step(projected[:, t], state)
        torch.testing.assert_close(state[0], states[:, t])


def test_no_steps_and_bfloat16_autocast():
    cell = GRUCell(hidden_dim=SIZE)
    assert cell(torch.zeros(BATCH, 0, 3 * SIZE))[0].shape == (BATCH, 0, SIZE)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (states,) = cell(torch.randn(BATCH, STEPS, 3 * SIZE).bfloat16())
    states.sum().backward()
    assert torch.isfinite(cell.weight.grad).all()


def test_starts_orthogonal():
    for gate in GRUCell(hidden_dim=SIZE, reset="before").weight.chunk(3):
        torch.testing.assert_close(gate @ gate.T, torch.eye(SIZE))


def test_refuses_an_unknown_reset():
    with pytest.raises(ValueError, match="'before' or 'after'"):
        GRUCell(hidden_dim=SIZE, reset="never")
