"""Attention by hand, in every order of the axes."""

import math

import pytest
import torch
from torch import nn

import saccade
from tests.interpretation.recording.models import Layer

B, H, N, D = 2, 3, 7, 4


def heads_last(query, key, value):
    weights = torch.softmax(torch.einsum("bhid,bhjd->bijh", query, key) / math.sqrt(D), dim=2)
    return torch.einsum("bijh,bhjd->bhid", weights, value)


def heads_in_the_middle(query, key, value):
    weights = torch.softmax(torch.einsum("bhid,bhjd->bihj", query, key) / math.sqrt(D), dim=-1)
    return torch.einsum("b h j d, b i h j -> b h i d", value, weights)


def columns(query, key, value):
    return torch.softmax(key @ query.mT / math.sqrt(D), dim=-2).mT @ value


def columns_from_the_right(query, key, value):
    return (value.mT @ torch.softmax(key @ query.mT / math.sqrt(D), dim=-2)).mT


def one_by_one(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(D), dim=-1)
    rows = [torch.mm(weights[row, head], value[row, head]) for row in range(B) for head in range(H)]
    return torch.stack(rows).view(B, H, N, D)


def some_queries_at_a_time(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(D), dim=-1)
    return torch.cat([weights[:, :, :5] @ value, weights[:, :, 5:] @ value], dim=2)


def added(query, key, value):
    query, key, value = (part.flatten(0, 1) for part in (query, key, value))
    scores = torch.baddbmm(torch.zeros(B * H, N, N), query, key.mT, beta=0, alpha=1 / math.sqrt(D))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
    return torch.baddbmm(torch.zeros(B * H, N, D), weights, value, beta=0).unflatten(0, (B, H))


def scattered(query, key, value):
    """All keys, but in the order of their scores."""
    scores, places = (query @ key.mT / math.sqrt(D)).topk(N, dim=-1)
    weights = torch.zeros_like(scores).scatter(-1, places, scores.softmax(-1))
    return weights @ value


class ByHand(Layer):
    def __init__(self, way):
        super().__init__()
        self.num_heads, self.way = H, way

    def forward(self, x):
        return self.way(*self.split(x)).transpose(1, 2).flatten(2)


WAYS = [heads_last, heads_in_the_middle, columns, columns_from_the_right]
WAYS += [one_by_one, some_queries_at_a_time, added, scattered]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_product_shows_heads_queries_and_keys(way):
    model, x = ByHand(way), torch.randn(B, N, H * D)
    with torch.no_grad():
        alone = model(x)
        with saccade.record(model) as trace:
            assert torch.equal(model(x), alone)
    assert len(trace) == 1
    torch.testing.assert_close(trace["ByHand"].weights, model.weights(x).float(), rtol=0, atol=1e-6)


def test_slots_share_out_keys():
    """Slot attention: a softmax over the queries, then each query divides by the sum over the keys."""

    class Slots(nn.Module):
        def forward(self, slots, x):
            shares = torch.softmax(torch.einsum("bid,bjd->bij", slots, x), dim=1)
            return torch.einsum("bjd,bij->bid", x, shares / shares.sum(-1, keepdim=True))

    slots, x = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    model = Slots()
    with saccade.record(model) as trace:
        found = model(slots, x)
    weights = trace["Slots"].weights
    assert weights.shape == (2, 1, 3, 7)
    torch.testing.assert_close(weights[:, 0] @ x, found, rtol=0, atol=1e-6)
