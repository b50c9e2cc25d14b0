"""Pairs of neighbours under a linear chain."""

import itertools

import pytest
import torch

from saccade import Attention
from saccade.aggregations import Pairwise
from saccade.scores import DotScore
from saccade.selections import KSubset, LinearChain, Sigmoid


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("chain", [True, False])
def test_is_the_expectation_over_all_outcomes(chain):
    selection = LinearChain(transitions=((0.3, -0.7), (0.2, 1.1))) if chain else Sigmoid()
    attention = Attention(
        score=DotScore(), selection=selection, aggregation=Pairwise(value_dim=3, output_dim=2)
    ).double()
    query, keys, values = random(1, 5), random(4, 5, seed=1), random(4, 3, seed=2)
    reading = attention(query, keys, values)
    maps = attention.aggregation.pair_proj.weight.view(3, 2, 6)
    expected = torch.zeros(2, dtype=torch.float64)
    for z in itertools.product((0, 1), repeat=4):
        probability = reading.selection.log_prob(torch.tensor([z], dtype=torch.float64)).exp()
        for j in range(3):
            which = 2 * z[j] + z[j + 1]
            if which:
                expected = expected + probability * (maps[which - 1] @ torch.cat([values[j], values[j + 1]]))
    torch.testing.assert_close(reading.context[0], expected)


def test_other_selections_are_refused():
    attention = Attention(score=DotScore(), selection=KSubset(k=2), aggregation=Pairwise(value_dim=5)).double()
    with pytest.raises(TypeError, match="LinearChain"):
        attention(random(1, 5), random(4, 5))
