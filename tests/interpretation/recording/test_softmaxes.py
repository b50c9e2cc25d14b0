"""Attention that models write by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from tests.interpretation.recording.models import Eager, Stack


@pytest.mark.parametrize("style", ["functional", "method", "einsum", "bmm"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_softmax_before_a_product(style, dropout):
    model, x = Eager(style, dropout), torch.randn(2, 7, 12)
    with saccade.record(model) as trace:
        model(x)
    (call,) = trace.values()
    torch.testing.assert_close(call.weights, model.weights(x).float(), rtol=0, atol=1e-6)


def test_other_softmaxes_are_not_attention():
    model = Stack()
    with saccade.record(model) as trace:
        model(torch.randn(2, 7, 12))
    assert list(trace) == ["first", "first#1", "second"]


class Additive(nn.Module):
    """One query for each row, masked after the softmax, over batch-first values."""

    def forward(self, scores, values, mask):
        weights = torch.softmax(scores, dim=1).masked_fill(~mask, 0.0)
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1)


def test_masked_afterwards_and_a_single_query():
    scores, values, mask = torch.randn(3, 5), torch.randn(3, 5, 7), torch.rand(3, 5) < 0.7
    model = Additive()
    with saccade.record(model) as trace:
        context = model(scores, values, mask)
    weights = trace["Additive"].weights
    assert weights.shape == (3, 1, 1, 5)
    assert (weights[:, 0, 0][~mask] == 0).all()
    torch.testing.assert_close(weights[:, 0] @ values, context.unsqueeze(1))


class Transposed(nn.Module):
    """Features first, so that the weights stand on the right of the product, transposed."""

    def forward(self, query, key, value):
        weights = F.softmax(query.transpose(1, 2) @ key, dim=-1)
        return value @ weights.transpose(1, 2)


def test_values_on_the_left():
    query, key, value = torch.randn(2, 5, 3), torch.randn(2, 5, 7), torch.randn(2, 11, 7)
    model = Transposed()
    with saccade.record(model) as trace:
        output = model(query, key, value)
    assert trace["Transposed"].shape == (2, 1, 3, 7)
    torch.testing.assert_close(trace["Transposed"].weights[:, 0] @ value.transpose(1, 2), output.transpose(1, 2))
