"""Bilinear, biased general, activated general, low-rank bilinear, biaffine."""

import pytest
import torch
from torch import nn

from saccade import Attention
from saccade.scores import (
    ActivatedGeneralScore,
    BiaffineScore,
    BiasedGeneralScore,
    BilinearScore,
    CosineScore,
    DotScore,
    LowRankBilinearScore,
    ScaledDotScore,
)

from .literal import HIDDEN, KEY_DIM, QUERY_DIM, assert_near, pair_by_pair, random_inputs, randomised

DIMS = {"query_dim": QUERY_DIM, "key_dim": KEY_DIM}


def test_bilinear():
    score = randomised(BilinearScore(**DIMS))
    query, keys = random_inputs()
    matrix = score.query_proj.weight.T
    assert matrix.shape == (QUERY_DIM, KEY_DIM)
    assert_near(score(query, keys), pair_by_pair(lambda q, k: q @ matrix @ k, query, keys))


def test_bilinear_with_the_identity_is_dot():
    score = BilinearScore(query_dim=KEY_DIM, key_dim=KEY_DIM).double()
    nn.init.eye_(score.query_proj.weight)
    query, keys = random_inputs(same_dim=True)
    assert_near(score(query, keys), DotScore()(query, keys))


def test_biased_general():
    score = randomised(BiasedGeneralScore(**DIMS))
    query, keys = random_inputs()
    weight, bias = score.query_proj.weight, score.query_proj.bias
    assert_near(score(query, keys), pair_by_pair(lambda q, k: k @ (weight @ q + bias), query, keys))


@pytest.mark.parametrize("activation", [None, nn.ReLU(), nn.Sigmoid()], ids=["default", "relu", "sigmoid"])
def test_activated_general(activation):
    score = randomised(ActivatedGeneralScore(**DIMS, activation=activation))
    query, keys = random_inputs()
    matrix, bias = score.query_proj.weight.T, score.bias
    act = torch.tanh if activation is None else activation
    assert_near(score(query, keys), pair_by_pair(lambda q, k: act(q @ matrix @ k + bias), query, keys))


def test_low_rank_bilinear():
    score = randomised(LowRankBilinearScore(**DIMS, rank=3))
    query, keys = random_inputs()
    p, q_matrix = score.query_proj.weight, score.key_proj.weight
    assert_near(score(query, keys), pair_by_pair(lambda q, k: (p @ q) @ (q_matrix @ k), query, keys))
    assert torch.linalg.matrix_rank(p.T @ q_matrix) == 3


def test_biaffine():
    score = randomised(BiaffineScore(**DIMS))
    query, keys = random_inputs()
    matrix, w = score.query_proj.weight.T, score.query_proj.bias
    u, b = score.query_bias.weight[0], score.query_bias.bias[0]
    assert_near(score(query, keys), pair_by_pair(lambda q, k: q @ matrix @ k + u @ q + w @ k + b, query, keys))


@pytest.mark.parametrize("kind", [BilinearScore, BiasedGeneralScore, BiaffineScore])
def test_fused_reading_is_the_plain_one(kind):
    score = randomised(kind(**DIMS))
    query, keys = random_inputs()
    mask = torch.rand(2, 3, 7) < 0.6
    mask[1, 2] = False
    reading = Attention(score=score)(query, keys, mask=mask)
    scores = score(query, keys).masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    assert_near(reading.context, weights @ keys)
    assert_near(reading.weights, weights)


@pytest.mark.parametrize(
    "score",
    [
        BilinearScore(**DIMS),
        BiasedGeneralScore(**DIMS),
        ActivatedGeneralScore(**DIMS),
        LowRankBilinearScore(**DIMS, rank=HIDDEN),
        BiaffineScore(**DIMS),
    ],
    ids=lambda score: type(score).__name__,
)
def test_wrong_sizes(score):
    query, keys = (x.float() for x in random_inputs())
    with pytest.raises(ValueError, match=r"query .* has 4 features.*query_dim=5.*query_dim=4"):
        score(query[..., :4], keys)
    with pytest.raises(ValueError, match=r"keys .* has 4 features.*key_dim=11"):
        score(query, keys[..., :4])


def test_which_scores_are_inner_products_and_nothing_else():
    class Shifted(DotScore):
        def prepare(self, keys, *, mask=None, start=0):
            return keys + 1.0

    class Declared(Shifted):
        def prepare(self, keys, *, mask=None, start=0):
            return keys

        def inner_product_scale(self, dim):
            return 1.0

    query, keys = random_inputs(same_dim=True)
    for score in (DotScore(), ScaledDotScore(), Declared()):
        scale = score.inner_product_scale(KEY_DIM)
        assert_near(score(query, keys), scale * query @ keys.transpose(-1, -2))
    for score in (Shifted(), CosineScore(), BilinearScore(**DIMS)):
        assert score.inner_product_scale(KEY_DIM) is None
