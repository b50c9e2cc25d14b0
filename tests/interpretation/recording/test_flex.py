import warnings

import pytest
import torch
from torch import nn

import saccade
from tests.interpretation.recording.models import plain_weights

flex = pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no FlexAttention")
BATCH, HEADS, QUERIES, KEYS, DIM = 2, 4, 5, 7, 8


class Flexible(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
        yield


@pytest.mark.parametrize("heads", [None, [1, 3]])
def test_scores_and_masks_by_functions(heads):
    query = torch.randn(BATCH, HEADS, QUERIES, DIM)
    key, value = torch.randn(2, BATCH, 2, KEYS, DIM).unbind()
    slopes = torch.randn(HEADS)
    mask = flex.create_block_mask(lambda b, h, i, j: j <= i + b, None, None, QUERIES, KEYS, device="cpu")
    model = Flexible(flex.flex_attention)

    def run():
        return model(
            query,
            key,
            value,
            score_mod=lambda score, b, h, i, j: score + slopes[h] * (i - j),
            block_mask=mask,
            enable_gqa=True,
            scale=0.4,
        )

    with saccade.record(model, heads=heads) as trace:
        output = run()
    chosen = heads or list(range(HEADS))
    scores = 0.4 * query @ key.repeat_interleave(2, 1).mT
    i, j = torch.arange(QUERIES)[:, None], torch.arange(KEYS)
    scores = scores + slopes[:, None, None] * (i - j)
    allowed = j <= i + torch.arange(BATCH)[:, None, None]
    expected = scores.masked_fill(~allowed[:, None], -torch.inf).softmax(-1)
    torch.testing.assert_close(trace["Flexible"].weights, expected[:, chosen], rtol=0, atol=1e-6)
    torch.testing.assert_close(output, expected @ value.repeat_interleave(2, 1), rtol=0, atol=1e-5)


def test_compiled_outside():
    model = Flexible(torch.compile(flex.flex_attention))
    query, key, value = torch.randn(3, BATCH, HEADS, KEYS, DIM).unbind()
    with saccade.record(model) as trace:
        output = model(query, key, value)
    torch.testing.assert_close(trace["Flexible"].weights @ value, output, rtol=0, atol=1e-5)


class Closing(nn.Module):
    """Scores that depend on variables: a number, a tensor, a list, a function and an object."""

    def forward(self, x, score_mod):
        return flex.flex_attention(x, x, x, score_mod=score_mod)


SLOPE = 1.0


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", ["closure", "tensor", "list", "global", "object", "written"])
def test_variables_that_change_later(kind):
    global SLOPE
    SLOPE = slope = 1.0
    bias, slopes, holder = torch.randn(5), [1.0], type("Holder", (), {"slope": 1.0})()
    written = torch.zeros(5)
    written += bias
    functions = {
        "closure": lambda score, b, h, q, k: score + slope * (q - k),
        "tensor": lambda score, b, h, q, k: score + bias[k],
        "list": lambda score, b, h, q, k: score + slopes[0] * (q - k),
        "global": lambda score, b, h, q, k: score + SLOPE * (q - k),
        "object": lambda score, b, h, q, k: score + holder.slope * (q - k),
        "written": lambda score, b, h, q, k: score + written[k],
    }
    model, x = Closing(), torch.randn(2, 3, 5, 8)
    with torch.no_grad(), saccade.record(model) as trace:
        model(x, functions[kind])
    before = trace["Closing"].weights
    SLOPE = slope = -2.0
    slopes[0] = holder.slope = -2.0
    written.neg_()
    bias.neg_()
    if kind == "tensor":
        with pytest.raises(RuntimeError, match="variable 0 of 'Closing' was changed in place"):
            _ = trace["Closing"].weights
    else:
        assert torch.equal(trace["Closing"].weights, before)
    offsets = torch.arange(5)[:, None] - torch.arange(5.0)
    added = -bias.expand(5, 5) if kind in ("tensor", "written") else offsets
    torch.testing.assert_close(before, plain_weights(x, x, mask=added).float(), rtol=0, atol=1e-5)


class Settings:
    slope = 0.5


def test_attributes_that_change_later():
    def score(score, batch, head, query, key):
        return (lambda distance: score - Settings.slope * distance)(query - key)

    query, key, value = torch.randn(3, BATCH, HEADS, KEYS, DIM).unbind()
    model = Flexible(flex.flex_attention)
    with torch.no_grad(), saccade.record(model) as trace:
        output = model(query, key, value, score_mod=score)
    Settings.slope = 3.0
    weights = trace["Flexible"].weights
    Settings.slope = 0.5
    torch.testing.assert_close(weights @ value, output, rtol=0, atol=1e-5)
