import copy
import json

import pytest
import torch
from torch import nn

from saccade.artifacts import JsonObject
from saccade.training import Adam, AdamW, optimisers
from saccade.training.checkpoints import pack_optimiser, unpack_optimiser
from saccade.training.state import check_optimiser


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 1))


def update(net, optimiser, seed):
    inputs = torch.randn(7, 5, generator=torch.Generator().manual_seed(seed))
    optimiser.zero_grad()
    net(inputs).square().mean().backward()
    optimiser.step()


@pytest.mark.parametrize("name", optimisers.names())
def test_each_goes_on_exactly_from_its_packed_state(name):
    net = model()
    optimiser = optimisers.create(name).create(net, learning_rate=0.1, weight_decay=0.01)
    for seed in range(3):
        update(net, optimiser, seed)
    tensors, options = pack_optimiser(optimiser.state_dict())
    other = copy.deepcopy(net)
    resumed = optimisers.create(name).create(other, learning_rate=0.7, weight_decay=0.5)
    saved = JsonObject(json.loads(json.dumps(options)), "state.json", "optimiser")
    state = unpack_optimiser({k: v.clone() for k, v in tensors.items()}, saved)
    check_optimiser(resumed, state)
    resumed.load_state_dict(state)
    for seed in range(3, 6):
        update(net, optimiser, seed)
        update(other, resumed, seed)
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_adam_is_the_equation_of_the_paper():
    net = nn.Linear(3, 1, bias=False)
    optimiser = Adam(betas=(0.8, 0.95), epsilon=1e-3).create(net, learning_rate=0.1, weight_decay=0.0)
    weight, m, v = net.weight.detach().clone().double(), 0.0, 0.0
    for t in range(1, 6):
        gradient = torch.tensor([[0.3 * t, -1.0, 2.0 / t]])
        net.weight.grad = gradient.clone()
        optimiser.step()
        m = 0.8 * m + 0.2 * gradient.double()
        v = 0.95 * v + 0.05 * gradient.double() ** 2
        weight -= 0.1 * (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-3)
    torch.testing.assert_close(net.weight.detach().double(), weight, atol=1e-6, rtol=1e-5)


def test_matrices_decay_and_vectors_do_not():
    net = model()
    before = [p.detach().clone() for p in net.parameters()]
    optimiser = AdamW().create(net, learning_rate=0.1, weight_decay=0.5)
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.step()
    for p, old in zip(net.parameters(), before, strict=True):
        torch.testing.assert_close(p.detach(), old * (0.95 if p.dim() > 1 else 1.0))


def test_frozen_parameters_are_left_out():
    net = model()
    net[0].requires_grad_(False)
    optimiser = Adam().create(net, learning_rate=0.1, weight_decay=0.0)
    assert sum(len(group["params"]) for group in optimiser.param_groups) == 2
    with pytest.raises(ValueError, match="no parameters to train"):
        Adam().create(net.requires_grad_(False), learning_rate=0.1, weight_decay=0.0)


@pytest.mark.parametrize("name", optimisers.names())
def test_a_step_is_noted_in_the_parameters(name):
    """Copies of weights, such as those packed for decoding, are made again when the version has grown."""
    model = torch.nn.Linear(3, 2)
    optimiser = optimisers.create(name).create(model, learning_rate=0.1, weight_decay=0.01)
    model(torch.ones(1, 3)).sum().backward()
    before = [parameter._version for parameter in model.parameters()]
    optimiser.step()
    assert all(p._version > version for p, version in zip(model.parameters(), before, strict=True))
