"""Attention that models write by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from saccade.interpretation.recording import ablate_head
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


class Calling(nn.Module):
    """Calls a function as a module."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x):
        return self.function(self, x)


def test_weights_that_another_module_uses_again():
    first = Calling(lambda self, x: ((w := torch.softmax(x @ x.mT, -1)) @ x, w))
    second = Calling(lambda self, given: given[1] @ given[0])
    model, x = nn.Sequential(first, second), torch.randn(2, 7, 12)
    with saccade.record(model) as trace:
        output = model(x)
    assert list(trace) == ["0", "1"]
    assert torch.equal(trace["0"].weights, trace["1"].weights)
    with saccade.record(model, change={"1": ablate_head(0)}) as trace:
        changed = model(x)
    assert (changed == 0).all()
    assert not (output == 0).any()
    assert (trace["0"].weights > 0).all()
    assert (trace["1"].weights == 0).all()


def in_parts(self, x):
    weights = torch.softmax(x @ x.mT, -1)
    return weights[..., :3] @ x[:, :3] + weights[..., 3:] @ x[:, 3:]


def test_weights_that_are_used_in_parts():
    model, x = Calling(in_parts), torch.randn(2, 7, 12)
    with (
        pytest.warns(UserWarning, match="multiplies the weights of some keys at a time"),
        saccade.record(model) as trace,
    ):
        model(x)
    assert [each.path for each in trace.missing] == ["Calling"]
    with pytest.raises(NotImplementedError), saccade.record(model, change={"*": ablate_head(0)}):
        model(x)


def test_two_products_with_changed_weights():
    model = Calling(lambda self, x: ((w := torch.softmax(x @ x.mT, -1)) @ x, w @ x.exp()))
    with saccade.record(model, change={"*": ablate_head(0)}):
        assert all((each == 0).all() for each in model(torch.randn(2, 7, 12)))
    scaled = Calling(lambda self, x: ((w := torch.softmax(x @ x.mT, -1)) @ x, (w * 2) @ x))
    with pytest.raises(NotImplementedError), saccade.record(scaled, change={"*": ablate_head(0)}):
        scaled(torch.randn(2, 7, 12))


@pytest.mark.parametrize("name", ["module", "function"])
def test_dropout_in_place_comes_after_the_weights(name):
    drop = nn.Dropout(0.5, inplace=True) if name == "module" else lambda w: F.dropout(w, 0.5, True, True)
    model, x = Calling(lambda self, x: drop(torch.softmax(x @ x.mT, -1)) @ x), torch.randn(2, 7, 12)
    with saccade.record(model) as trace:
        model(x)
    torch.testing.assert_close(trace["Calling"].weights[:, 0], torch.softmax(x @ x.mT, -1))


@pytest.mark.parametrize(
    "spelling",
    [
        lambda w, x: torch.linalg.matmul(w.detach(), x),
        lambda w, x: w.clamp(min=0).view_as(w) @ x,
        lambda w, x: w.swapdims(1, 2).moveaxis(1, 2) @ x,
        lambda w, x: w.narrow(1, 0, 7).tril() @ x,
    ],
)
def test_more_spellings(spelling):
    model = Calling(lambda self, x: spelling(torch.softmax(x @ x.mT, -1), x))
    with saccade.record(model) as trace:
        model(torch.randn(1, 7, 12))
    assert len(trace) == 1
    assert trace["Calling"].shape[2:] == (7, 7)


@pytest.mark.parametrize(
    "spelling",
    [
        lambda w: torch.cat([w[..., :3], w[..., 3:]], -1),
        lambda w: w.flip(-1).flip(-1),
        lambda w: torch.empty_like(w).copy_(w),
        lambda w: w.repeat_interleave(1, -1),
    ],
)
def test_rearranged_weights_are_reported(spelling):
    whole = Calling(lambda self, x: (spelling(torch.softmax((x @ x.mT)[:, None], -1)) @ x[:, None])[:, 0])
    model = nn.Sequential(whole, Eager("functional"))
    for each, path in ((model, "0"), (whole, "Calling")):
        with pytest.warns(UserWarning, match="which is not followed"), saccade.record(each) as trace:
            each(torch.randn(2, 7, 12))
        assert [missing.path for missing in trace.missing] == [path]


@pytest.mark.parametrize(
    "forward",
    [
        lambda w, v: w.transpose(1, 2) @ v,
        lambda w, v: torch.permute(F.dropout(w, 0.5), (0, 2, 1, 3)) @ v,
        lambda w, v: F.dropout(w.movedim(2, 1), 0.5) @ v,
    ],
)
def test_heads_behind_queries(forward):
    x = torch.randn(2, 7, 3, 4)
    model = Calling(lambda self, x: forward(torch.einsum("bqhd,bkhd->bqhk", x, x).softmax(-1), x.transpose(1, 2)))
    with saccade.record(model) as trace:
        model(x)
    expected = torch.einsum("bqhd,bkhd->bhqk", x, x).softmax(-1)
    torch.testing.assert_close(trace["Calling"].weights, expected)


@pytest.mark.parametrize(
    "head",
    [
        lambda self, x: torch.cat([x, x.softmax(-1)], -1),
        lambda self, x: torch.stack([x.softmax(1), x.softmax(-1)]),
        lambda self, x: torch.empty_like(x).copy_(x.softmax(-1)),
    ],
)
def test_probabilities_of_classes_are_not_reported(head):
    model = nn.Sequential(Eager("functional"), Calling(head))
    with saccade.record(model) as trace:
        model(torch.randn(2, 7, 12))
    assert list(trace) == ["0"]
    assert trace.missing == []


def test_the_module_around_may_analyse_weights():
    inner = Calling(lambda self, x: torch.softmax(x @ x.mT, -1))
    attention = Calling(lambda self, x: ((w := self.parts[0](x)) @ x, w), inner)
    model = Calling(lambda self, x: (given := self.parts[0](x), given[1] @ given[1].mT), attention)
    with saccade.record(model) as trace:
        model(torch.randn(2, 7, 12))
    assert list(trace) == ["parts.0"]
    assert trace.missing == []


def test_a_part_that_is_used_after_the_whole():
    model = Calling(lambda self, x: ((w := torch.softmax(x @ x.mT, -1)) @ x, w[..., 1:] @ x[:, 1:]))
    with saccade.record(model) as trace:
        model(torch.randn(2, 7, 12))
    assert trace["Calling"].shape == (2, 1, 7, 7)
    assert trace.missing == []
