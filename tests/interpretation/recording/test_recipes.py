"""Weights computed afterwards are those that the fused kernel used."""

import pytest
import torch

import saccade
from tests.interpretation.recording.models import BATCH, DIM, HEADS, KEYS, QUERIES, Fused, Layer, plain_weights

ALLOWED = torch.rand(BATCH, 1, QUERIES, KEYS, generator=torch.Generator().manual_seed(1)) < 0.6
NOTHING = ALLOWED.clone()
NOTHING[1, :, 2] = False
MASKS = {
    "none": None,
    "bool": ALLOWED,
    "bool over keys": ALLOWED[:, :, :1],
    "empty row": NOTHING,
    "added": torch.randn(BATCH, HEADS, QUERIES, KEYS),
    "added minus infinity": torch.zeros(QUERIES, KEYS).masked_fill(~ALLOWED[0, 0], -torch.inf),
}


def recorded(*tensors, **options):
    model = Fused()
    with saccade.record(model) as trace:
        output = model(*tensors, **options)
    (call,) = trace.values()
    assert torch.equal(output, model(*tensors, **options)) or options.get("dropout_p")
    return call.weights, output


@pytest.fixture
def tensors():
    return [torch.randn(BATCH, HEADS, n, DIM) for n in (QUERIES, KEYS, KEYS)]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("scale", [None, 0.7])
def test_masks_and_scale(tensors, name, scale):
    weights, output = recorded(*tensors, attn_mask=MASKS[name], scale=scale)
    expected = plain_weights(*tensors[:2], mask=MASKS[name], scale=scale)
    torch.testing.assert_close(weights, expected.float(), rtol=0, atol=1e-6)
    torch.testing.assert_close(weights @ tensors[2], output, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(QUERIES, KEYS), (KEYS, QUERIES), (KEYS, KEYS)])
def test_causal_counts_from_the_first(queries, keys):
    query, key, value = (torch.randn(BATCH, HEADS, n, DIM) for n in (queries, keys, keys))
    weights, output = recorded(query, key, value, is_causal=True)
    torch.testing.assert_close(weights, plain_weights(query, key, causal=True).float(), rtol=0, atol=1e-6)
    torch.testing.assert_close(weights @ value, output, rtol=0, atol=1e-5)


def test_weights_are_before_dropout(tensors):
    weights, _ = recorded(*tensors, dropout_p=0.5)
    torch.testing.assert_close(weights, plain_weights(*tensors[:2]).float(), rtol=0, atol=1e-6)


def test_grouped_heads():
    query = torch.randn(BATCH, 6, QUERIES, DIM)
    key, value = torch.randn(2, BATCH, 2, KEYS, DIM).unbind()
    weights, output = recorded(query, key, value, enable_gqa=True)
    torch.testing.assert_close(weights @ value.repeat_interleave(3, 1), output, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("leading", "shape"), [((), (1, 1)), ((5,), (5, 1)), ((2, 3), (2, 3)), ((2, 3, 5), (6, 5))])
def test_there_are_always_four_axes(leading, shape):
    query, key, value = (torch.randn(*leading, n, DIM) for n in (QUERIES, KEYS, KEYS))
    mask = torch.rand(*leading, QUERIES, KEYS) < 0.8
    weights, _ = recorded(query, key, value, attn_mask=mask)
    assert weights.shape == (*shape, QUERIES, KEYS)
    expected = plain_weights(query, key, mask=mask).view(*shape, QUERIES, KEYS)
    torch.testing.assert_close(weights, expected.float(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_half_precision_is_computed_in_single(tensors, dtype):
    query, key, value = (tensor.to(dtype) for tensor in tensors)
    weights, _ = recorded(query, key, value)
    assert weights.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(weights.double(), plain_weights(query, key), rtol=0, atol=1e-6)


def test_long_inputs_are_computed_in_blocks(monkeypatch):
    layer, x = Layer(), torch.randn(BATCH, KEYS, 12)
    monkeypatch.setattr("saccade.interpretation.recording.blocks.BLOCK", BATCH * 3 * KEYS * 2)
    with saccade.record(layer) as trace:
        layer(x, is_causal=True)
    torch.testing.assert_close(trace["Layer"].weights, layer.weights(x, causal=True).float(), rtol=0, atol=1e-6)


def test_a_scale_that_changes_later():
    scale, x = torch.tensor(0.5), torch.randn(2, 3, 5, 8)

    class Scaled(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=scale)

    with torch.no_grad(), saccade.record(model := Scaled()) as trace:
        model(x)
    scale.fill_(3.0)
    torch.testing.assert_close(trace["Scaled"].weights, torch.softmax(x @ x.mT * 0.5, -1))
