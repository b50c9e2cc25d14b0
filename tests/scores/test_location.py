import pytest
import torch

from saccade import Attention
from saccade.scores import LocationScore

from .literal import KEYS, QUERY_DIM, assert_near, random_inputs, randomised


def test_location_looks_at_the_query_alone():
    score = randomised(LocationScore(query_dim=QUERY_DIM, max_keys=KEYS + 4))
    query, keys = random_inputs()
    w = score.query_proj.weight
    expected = torch.stack([torch.stack([(w @ q)[:KEYS] for q in row]) for row in query])
    assert_near(score(query, keys), expected)
    assert_near(score(query, torch.randn_like(keys)), expected)


def test_weights_are_normalised_over_the_keys_there_are():
    score = randomised(LocationScore(query_dim=QUERY_DIM, max_keys=KEYS + 4))
    query, keys = random_inputs()
    weights = Attention(score=score)(query, keys).weights
    assert_near(weights.sum(-1), torch.ones(2, 3, dtype=torch.float64))


def test_more_keys_than_it_was_built_for():
    score = LocationScore(query_dim=QUERY_DIM, max_keys=KEYS)
    keys = random_inputs()[1].float()
    attention = Attention(score=score)
    with pytest.raises(ValueError, match=r"keys reach position 8, but LocationScore was built with max_keys=7"):
        attention.prepare(torch.cat([keys, keys[:, :1]], dim=1))
    memory = attention.prepare(keys)
    with pytest.raises(ValueError, match="keys reach position 8"):
        memory.append(keys[:, :1])
    with pytest.raises(ValueError, match="max_keys must be 1 or more, got 0"):
        LocationScore(query_dim=QUERY_DIM, max_keys=0)


def test_a_memory_that_grows():
    score = LocationScore(query_dim=QUERY_DIM, max_keys=KEYS)
    query, keys = (x.float() for x in random_inputs())
    attention = Attention(score=score)
    grown = attention.prepare(keys[:, :4]).append(keys[:, 4:])
    torch.testing.assert_close(attention.read(query, grown).context, attention(query, keys).context)
