"""Reading what was picked, against a loop over the picked values alone."""

import pytest
import torch

from saccade.layers import ReadPicked
from saccade.layers.gathering import pack, unpack

BATCH, QUERIES, KEYS, DIM, HIDDEN = 3, 2, 7, 5, 11
Z = torch.tensor([[0, 1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]], dtype=torch.float64)
WEIGHTS = torch.stack([Z, Z.flip(1)], dim=1)


@pytest.fixture(params=[("rcnn", "last"), ("gru", "last"), ("lstm", "last"), ("rcnn", "average"), ("lstm", "average")])
def aggregation(request):
    torch.manual_seed(3)
    cell, pooling = request.param
    return ReadPicked(value_dim=DIM, hidden_dim=HIDDEN, num_layers=2, cell=cell, pooling=pooling).double()


def test_reads_the_picked_values_as_if_there_were_no_others(aggregation):
    values = torch.randn(BATCH, KEYS, DIM, dtype=torch.float64)
    context = aggregation(WEIGHTS, values)
    assert context.shape == (BATCH, QUERIES, aggregation.output_dim(DIM)) == (BATCH, QUERIES, 2 * HIDDEN)
    for row in range(BATCH):
        for query in range(QUERIES):
            states = [layer.cell.zeros(1, like=values) for layer in aggregation.layers]
            passed = []
            for place in WEIGHTS[row, query].nonzero().flatten().tolist():
                read = values[row, place][None]
                for number, layer in enumerate(aggregation.layers):
                    states[number] = layer.step(read, states[number])
                    read = states[number][0]
                passed.append(torch.cat([state[0][0] for state in states]))
            if passed:
                wanted = torch.stack(passed).mean(0) if aggregation.average else passed[-1]
                torch.testing.assert_close(context[row, query], wanted)
    assert not context[1].any()


def test_with_gradients_through_the_picks_it_reads_the_same(aggregation):
    values = torch.randn(BATCH, KEYS, DIM, dtype=torch.float64, requires_grad=True)
    plain = aggregation(WEIGHTS, values)
    weights = WEIGHTS.clone().requires_grad_()
    gated = aggregation(weights, values)
    torch.testing.assert_close(gated, plain)
    parameters = [values, *aggregation.parameters()]
    upstream = torch.randn_like(plain)
    for one, other in zip(
        torch.autograd.grad(gated, parameters, upstream, retain_graph=True),
        torch.autograd.grad(plain, parameters, upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    (gradient,) = torch.autograd.grad(gated, weights, upstream)
    assert (gradient != 0).all()  # also of what was not picked


def test_gradients_of_fractions(aggregation):
    values = torch.randn(1, 3, DIM, dtype=torch.float64)
    weights = torch.rand(1, 2, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: aggregation(z, values), (weights,))


def test_no_values_at_all(aggregation):
    for weights in (torch.zeros(BATCH, 1, 0).double(), torch.zeros(BATCH, 1, 0).double().requires_grad_()):
        context = aggregation(weights, torch.zeros(BATCH, 0, DIM, dtype=torch.float64))
        assert torch.equal(context, torch.zeros(BATCH, 1, 2 * HIDDEN, dtype=torch.float64))


def test_packing_and_back():
    values = torch.arange(BATCH * KEYS, dtype=torch.float64).reshape(BATCH, KEYS) + 1
    packed, mask, places = pack(values.unsqueeze(-1), Z > 0)
    assert packed[0, mask[0], 0].tolist() == [2, 4, 5]
    assert mask.sum(1).tolist() == [3, 0, 7]
    assert torch.equal(unpack(packed.squeeze(-1), mask, places, KEYS), values * Z)


def test_unknown_pooling_is_refused():
    with pytest.raises(ValueError, match="pooling must be 'last' or 'average', got 'max'"):
        ReadPicked(value_dim=DIM, hidden_dim=HIDDEN, pooling="max")
