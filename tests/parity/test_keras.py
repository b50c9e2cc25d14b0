"""The same numbers as Keras' Attention and AdditiveAttention, which run on torch here."""

import os

import pytest
import torch
from torch import nn

from saccade import Attention, MultiHead, masks
from saccade.scores import AdditiveScore, DotScore, ScaledDotScore

os.environ.setdefault("KERAS_BACKEND", "torch")  # read when keras is first imported
keras = pytest.importorskip("keras", reason="the peer `keras` is not installed")
if keras.backend.backend() != "torch":
    pytest.skip(f"keras runs on {keras.backend.backend()}, not on torch", allow_module_level=True)

BATCH, QUERIES, KEYS, DIM, VALUE = 2, 5, 13, 7, 11


@pytest.fixture
def tensors():
    return [torch.randn(BATCH, n, d) for n, d in ((QUERIES, DIM), (KEYS, DIM), (KEYS, VALUE))]


def identity_additive(scale):
    """Keras' layer projects nothing: tanh(query + key) and a vector of scales."""
    score = AdditiveScore(query_dim=DIM, key_dim=DIM, hidden_dim=DIM)
    with torch.no_grad():
        score.query_proj.weight.copy_(torch.eye(DIM))
        score.key_proj.weight.copy_(torch.eye(DIM))
        score.hidden_proj.weight.copy_(scale)
    return score


def run(layer, tensors, **arguments):
    """Keras takes query, value, key, in this order."""
    query, keys, values = tensors
    context, weights = layer([query, values, keys], return_attention_scores=True, **arguments)
    return context.detach(), weights.detach()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("use_scale", [False, True])
def test_dot_attention(tensors, masked, use_scale):
    layer = keras.layers.Attention(use_scale=use_scale)
    layer.build([tuple(tensor.shape) for tensor in (tensors[0], tensors[2], tensors[1])])
    scale = 1.0
    if use_scale:
        layer.scale.assign(0.7)
        scale = 0.7
    lengths = torch.tensor([13, 4])
    mask = torch.arange(KEYS) < lengths[:, None]
    context, weights = run(layer, tensors, mask=[None, mask] if masked else None)
    attention = Attention(score=DotScore())
    query, keys, values = tensors
    reading = attention(scale * query, keys, values, mask=masks.from_lengths(lengths) if masked else None)
    torch.testing.assert_close(reading.context, context, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(reading.weights, weights, rtol=1e-4, atol=1e-5)


def test_causal_dot_attention():
    x = torch.randn(BATCH, KEYS, DIM)
    context, weights = run(keras.layers.Attention(), [x, x, x], use_causal_mask=True)
    reading = Attention(score=DotScore())(x, x, mask=masks.causal())
    torch.testing.assert_close(reading.context, context, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(reading.weights, weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("use_scale", [False, True])
def test_additive_attention(tensors, masked, use_scale):
    layer = keras.layers.AdditiveAttention(use_scale=use_scale)
    layer.build([tuple(tensor.shape) for tensor in (tensors[0], tensors[2], tensors[1])])
    scale = torch.ones(DIM)
    if use_scale:
        scale = torch.randn(DIM)
        layer.scale.assign(scale.numpy())
    lengths = torch.tensor([13, 4])
    mask = torch.arange(KEYS) < lengths[:, None]
    context, weights = run(layer, tensors, mask=[None, mask] if masked else None)
    attention = Attention(score=identity_additive(scale))
    reading = attention(*tensors, mask=masks.from_lengths(lengths) if masked else None)
    torch.testing.assert_close(reading.context, context, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(reading.weights, weights, rtol=1e-4, atol=1e-5)


def test_multihead_attention(tensors):
    query, keys, values = tensors
    layer = keras.layers.MultiHeadAttention(num_heads=3, key_dim=17, value_dim=19, output_shape=23)
    layer.build(query.shape, values.shape, keys.shape)
    ours = MultiHead(
        attention=Attention(score=ScaledDotScore()),
        num_heads=3,
        query_dim=DIM,
        key_dim=DIM,
        value_dim=VALUE,
        head_dim=17,
        value_head_dim=19,
        output_dim=23,
    )
    for weight in layer.trainable_weights:
        weight.assign(0.3 * torch.randn(*weight.shape).numpy())
    dense = {"query_proj": "query", "key_proj": "key", "value_proj": "value", "output_proj": "attention_output"}
    theirs = {weight.path: torch.as_tensor(weight.value).detach() for weight in layer.trainable_weights}

    def weight_of(name, kind):
        (found,) = [value for path, value in theirs.items() if path.split("/")[-2:] == [name, kind]]
        return found

    with torch.no_grad():
        for name, proj in ours.named_children():
            if isinstance(proj, nn.Linear):
                kernel = weight_of(dense[name], "kernel")
                flat = kernel.flatten(0, 1) if name == "output_proj" else kernel.flatten(1)
                proj.weight.copy_(flat.T)
                proj.bias.copy_(weight_of(dense[name], "bias").flatten())
    context, weights = layer(query, values, keys, return_attention_scores=True)
    reading = ours(query, keys, values)
    torch.testing.assert_close(reading.context, context, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(reading.weights, weights, rtol=1e-4, atol=1e-5)
