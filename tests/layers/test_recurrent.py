import pytest
import torch

from saccade.layers import RecurrentLayer, RecurrentStack
from saccade.layers.recurrent import last_real, make_cell, reverse
from tests.oracles.recurrent import run_gru_before, run_lstm

LENGTHS = torch.tensor([5, 2, 0, 3])
MASK = torch.arange(5) < LENGTHS[:, None]


def test_reverse_leaves_padding_where_it_is():
    tokens = torch.arange(20).view(4, 5)
    expected = torch.tensor([[4, 3, 2, 1, 0], [6, 5, 7, 8, 9], [10, 11, 12, 13, 14], [17, 16, 15, 18, 19]])
    assert torch.equal(reverse(tokens, MASK), expected)
    assert torch.equal(reverse(reverse(tokens, MASK), MASK), tokens)


def test_last_real():
    states = torch.arange(20.0).view(4, 5, 1)
    assert last_real((states,), MASK)[0].flatten().tolist() == [4, 6, 0, 17]
    assert last_real((states[:, :0],), MASK[:, :0])[0].tolist() == [[0.0]] * 4


@pytest.mark.parametrize("cell", ["paper_gru", "lstm"])
def test_both_directions_are_loops_over_real_steps(cell):
    torch.manual_seed(0)
    layer = RecurrentLayer(input_dim=3, hidden_dim=7, cell=cell, bidirectional=True).double()
    inputs = torch.randn(4, 5, 3, dtype=torch.float64)
    outputs, final = layer(inputs, MASK)
    weights, biases = layer.input_proj.weight.chunk(2), layer.input_proj.bias.chunk(2)
    for row, length in enumerate(LENGTHS.tolist()):
        for direction in range(2):
            steps = inputs[row, :length].flip(0) if direction else inputs[row, :length]
            bias = biases[direction].clone()
            if cell == "lstm":
                bias[7:14] += layer.cells[direction].bias
                pairs = run_lstm(steps, weights[direction], bias, layer.cells[direction].weight)
            else:
                states = run_gru_before(steps, weights[direction], bias, layer.cells[direction].weight)
                pairs = [(state,) for state in states]
            part = slice(7 * direction, 7 * direction + 7)
            for i, state in enumerate(pairs):
                place = length - 1 - i if direction else i
                torch.testing.assert_close(outputs[row, place, part], state[0])
            for m, tensor in enumerate(final):
                last = pairs[-1][m] if pairs else torch.zeros(7, dtype=torch.float64)
                torch.testing.assert_close(tensor[row, part], last)


@pytest.mark.parametrize("cell", ["gru", "paper_gru", "lstm", "rcnn"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_is_never_read(cell, bidirectional):
    torch.manual_seed(0)
    layer = RecurrentLayer(input_dim=3, hidden_dim=7, cell=cell, bidirectional=bidirectional).double()
    inputs = torch.randn(4, 5, 3, dtype=torch.float64)
    other = torch.where(MASK[..., None], inputs, 1e3)
    (outputs, final), (outputs2, final2) = layer(inputs, MASK), layer(other, MASK)
    torch.testing.assert_close(outputs[MASK], outputs2[MASK])
    torch.testing.assert_close(final, final2)
    assert all(not tensor[2].any() for tensor in final)
    alone, final_alone = layer(inputs[1:2, :2], MASK[1:2, :2])
    torch.testing.assert_close(alone[0], outputs[1, :2])
    torch.testing.assert_close(final_alone[0][0], final[0][1])


def test_stack_steps_equal_its_run():
    torch.manual_seed(0)
    stack = RecurrentStack(input_dim=3, hidden_dim=7, num_layers=2, cell="lstm").double()
    inputs = torch.randn(2, 5, 3, dtype=torch.float64)
    states = [layer.cell.zeros(2, like=inputs) for layer in stack.layers]
    outputs = stack(inputs, states)
    for t in range(5):
        top, states = stack.step(stack.first.input_proj(inputs[:, t]), states)
        torch.testing.assert_close(top, outputs[:, t])


def test_names_the_nearest_cell():
    with pytest.raises(ValueError, match="Did you mean 'lstm'"):
        make_cell("lstn", 3)
    with pytest.raises(ValueError, match="num_layers"):
        RecurrentStack(input_dim=3, hidden_dim=7, num_layers=0)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_outputs_are_those_of_forward(cell, bidirectional):
    torch.manual_seed(0)
    layer = RecurrentLayer(input_dim=3, hidden_dim=5, cell=cell, bidirectional=bidirectional)
    inputs = torch.randn(4, 7, 3, requires_grad=True)
    mask = torch.arange(7) < torch.tensor([7, 4, 1, 0])[:, None]
    wanted, final = layer(inputs, mask)
    found, last = layer.outputs(inputs, mask)
    torch.testing.assert_close(found[mask], wanted[mask])
    torch.testing.assert_close(last, final[0])
    parameters = [inputs, *layer.parameters()]
    ours = torch.autograd.grad(found[mask].square().sum(), parameters)
    theirs = torch.autograd.grad(wanted[mask].square().sum(), parameters)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(layer.outputs(inputs, mask)[0][mask], wanted[mask])
    exact = layer.double()
    torch.testing.assert_close(exact.outputs(inputs.double(), mask)[0], exact(inputs.double(), mask)[0])
    assert layer.outputs(inputs[:, :0].double(), mask[:, :0])[0].shape == (4, 0, layer.output_dim)
