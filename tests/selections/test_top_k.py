import pytest
import torch

from saccade.selections import Softmax, TopK


def literal(scores, mask, k):
    weights = torch.zeros_like(scores)
    for row in range(len(scores)):
        allowed = [j for j in range(scores.shape[1]) if mask[row, j]]
        best = sorted(allowed, key=lambda j: -scores[row, j].item())[:k]
        total = sum(scores[row, j].exp() for j in best)
        for j in best:
            weights[row, j] = scores[row, j].exp() / total
    return weights


@pytest.mark.parametrize("k", [1, 3, 7, 20])
def test_equals_the_loop(k):
    scores, mask = torch.randn(11, 7, dtype=torch.float64), torch.rand(11, 7) > 0.4
    distribution = TopK(k=k)(scores, mask)
    torch.testing.assert_close(distribution.marginals, literal(scores, mask, k))
    assert (distribution.support.sum(-1) == mask.sum(-1).clamp(max=k)).all()


def test_with_few_keys_is_the_softmax():
    scores, mask = torch.randn(5, 7), torch.rand(5, 7) > 0.5
    torch.testing.assert_close(TopK()(scores, mask).marginals, Softmax()(scores, mask).marginals)


def test_ties_keep_exactly_k():
    weights = TopK(k=2)(torch.zeros(3, 5)).marginals
    assert (weights.sort(-1).values == torch.tensor([0, 0, 0, 0.5, 0.5])).all()


def test_k_is_checked():
    with pytest.raises(ValueError, match="k must be 1 or more, got 0"):
        TopK(k=0)


def test_ties_go_to_the_earlier_key():
    mask = torch.arange(101) > 1
    weights = TopK(k=3)(torch.zeros(2, 101), mask.expand(2, 101)).marginals
    assert (weights.nonzero()[:, 1] == torch.tensor([2, 3, 4, 2, 3, 4])).all()
