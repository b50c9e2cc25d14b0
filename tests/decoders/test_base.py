from typing import NamedTuple

import pytest
import torch

from saccade import Attention
from saccade.decoders import CopyStates, Decoded, Decoder, ProjectSummary, Step
from saccade.scores import DotScore


class State(NamedTuple):
    memory: object
    hidden: object
    count: int


def test_select_moves_everything_and_reorder_leaves_the_memory():
    states = torch.arange(6.0).view(3, 2, 1)
    memory = Attention(score=DotScore()).prepare(states, mask=torch.ones(3, 1, 2, dtype=torch.bool))
    hidden = (torch.arange(3.0), (torch.arange(3.0, 6.0), None))
    rows = torch.tensor([2, 0, 0])
    state = State(memory, hidden, 7)
    chosen = Decoder().select(state, rows)
    assert torch.equal(chosen.memory.values, states[rows])
    assert torch.equal(chosen.hidden[1][0], torch.tensor([5.0, 3.0, 3.0]))
    assert chosen.hidden[1][1] is None
    assert chosen.count == 7
    moved = Decoder().reorder(state, rows)
    assert moved.memory is memory
    assert torch.equal(moved.hidden[0], torch.tensor([2.0, 0.0, 0.0]))
    assert torch.equal(Decoder().reorder(hidden, rows)[0], torch.tensor([2.0, 0.0, 0.0]))


def test_weights_are_computed_when_asked_for_and_once():
    calls = []

    def compute():
        calls.append(1)
        return torch.ones(2)

    for result in (Step(torch.zeros(2), None, compute), Decoded(torch.zeros(2), compute)):
        calls.clear()
        assert not calls
        assert torch.equal(result.weights, torch.ones(2))
        assert result.weights is tuple(result)[-1]
        assert len(calls) == 1
    assert Step(torch.zeros(2), None).weights is None


def test_bridges():
    summary = tuple((torch.randn(2, 7), torch.randn(2, 7)) for _ in range(3))
    assert CopyStates()(summary) is summary
    with pytest.raises(TypeError, match="ProjectSummary"):
        CopyStates()(torch.zeros(2, 7))
    bridge = ProjectSummary(summary_dim=5, hidden_dim=3, num_layers=2, num_states=2)
    (h, c), (h2, _) = bridge(summary)
    expected = torch.tanh(bridge.proj(summary[-1][0][:, 2:]))
    torch.testing.assert_close(torch.cat([h, h2], dim=-1), expected)
    assert not c.any()
