"""The scores of GAT and GATv2, pair by pair."""

import pytest
import torch
from torch.nn import functional as F

from saccade.scores import GATScore, GATv2Score

from .literal import KEY_DIM, assert_near, pair_by_pair, random_inputs, randomised

HEADS = 3


def leaky(x, slope):
    return x if x >= 0 else slope * x


def test_gat():
    score = randomised(GATScore(dim=KEY_DIM, slope=0.3))
    query, keys = random_inputs(same_dim=True)
    vector = torch.cat([score.query_vector[0], score.key_vector[0]])

    def pair(q, k):
        return leaky(vector @ torch.cat([q, k]), 0.3)

    assert_near(score(query, keys), pair_by_pair(pair, query, keys))


def test_gatv2():
    score = randomised(GATv2Score(dim=KEY_DIM))
    query, keys = random_inputs(same_dim=True)

    def pair(q, k):
        return sum(score.vector[0, d] * leaky(q[d] + k[d], 0.2) for d in range(KEY_DIM))

    assert_near(score(query, keys), pair_by_pair(pair, query, keys))


@pytest.mark.parametrize("kind", [GATScore, GATv2Score])
def test_each_head_has_its_own_vectors(kind):
    score = randomised(kind(dim=KEY_DIM, num_heads=HEADS))
    query, keys = torch.randn(4, HEADS, 2, KEY_DIM).double(), torch.randn(4, HEADS, 5, KEY_DIM).double()
    found = score(query, keys)
    for head in range(HEADS):
        alone = kind(dim=KEY_DIM).double()
        alone.load_state_dict({name: value[head : head + 1] for name, value in score.state_dict().items()})
        assert_near(found[:, head], alone(query[:, head], keys[:, head]))


def test_gat_ranks_keys_alike_for_all_queries_and_gatv2_does_not():
    query, keys = torch.randn(50, 4), torch.randn(6, 4)
    assert len(GATScore(dim=4)(query, keys).argmax(-1).unique()) == 1
    assert len(GATv2Score(dim=4)(query, keys).argmax(-1).unique()) > 1


@pytest.mark.parametrize("kind", [GATScore, GATv2Score])
def test_sizes_are_checked(kind):
    with pytest.raises(ValueError, match="dim"):
        kind(dim=0)
    with pytest.raises(ValueError, match=rf"{kind.__name__}.*keys"):
        kind(dim=4)(torch.randn(2, 4), torch.randn(3, 5))
    with pytest.raises(ValueError, match=rf"{kind.__name__}.*query"):
        kind(dim=4)(torch.randn(2, 5), torch.randn(3, 4))


def test_the_slope_is_that_of_torch():
    score = randomised(GATScore(dim=2, slope=0.0))
    query, keys = torch.randn(9, 2).double(), torch.randn(9, 2).double()
    raw = query @ score.query_vector[0] + (keys @ score.key_vector[0])[:, None]
    assert_near(score(query, keys), F.relu(raw).T)
