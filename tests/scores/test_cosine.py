"""Cosine and NTM content."""

import pytest
import torch
from torch.nn import functional as F

from saccade.scores import CosineScore, NTMContentScore

from .literal import KEY_DIM, QUERY_DIM, assert_near, pair_by_pair, random_inputs, randomised


def test_cosine_is_that_of_torch():
    query, keys = random_inputs(same_dim=True)
    assert_near(CosineScore()(query, keys), F.cosine_similarity(query.unsqueeze(-2), keys.unsqueeze(-3), dim=-1))


def test_cosine_ignores_lengths():
    query, keys = random_inputs(same_dim=True)
    assert_near(CosineScore()(query * 1e4, keys * 1e-3), CosineScore()(query, keys))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_zero_vectors_score_zero_with_finite_gradients(dtype):
    query = torch.randn(3, 5).to(dtype)
    keys = torch.randn(7, 5).to(dtype)
    query[1], keys[4] = 0.0, 0.0
    query.requires_grad_(), keys.requires_grad_()
    scores = CosineScore()(query, keys)
    assert (scores[1] == 0).all()
    assert (scores[:, 4] == 0).all()
    scores.sum().backward()
    assert query.grad.isfinite().all()
    assert keys.grad.isfinite().all()


def test_cosine_needs_one_size():
    with pytest.raises(ValueError, match=r"CosineScore needs queries and keys of the same size.*\(3, 5\).*\(7, 4\)"):
        CosineScore()(torch.randn(3, 5), torch.randn(7, 4))


def test_ntm_content():
    score = randomised(NTMContentScore(query_dim=QUERY_DIM, key_dim=KEY_DIM))
    query, keys = random_inputs()
    w, u, b = score.query_proj.weight, score.strength_proj.weight[0], score.strength_proj.bias[0]

    def pair(q, k):
        emitted = w @ q
        strength = torch.log(1 + torch.exp(u @ q + b))
        return strength * (emitted @ k) / (emitted.norm() * k.norm())

    assert_near(score(query, keys), pair_by_pair(pair, query, keys))


def test_ntm_content_on_an_empty_memory_row():
    score = NTMContentScore(query_dim=QUERY_DIM, key_dim=KEY_DIM)
    keys = torch.zeros(7, KEY_DIM, requires_grad=True)
    scores = score(torch.randn(3, QUERY_DIM), keys)
    assert (scores == 0).all()
    scores.sum().backward()
    assert keys.grad.isfinite().all()
