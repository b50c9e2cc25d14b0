"""PyTorch's own layers, on their plain and on their fast paths."""

import warnings

import pytest
import torch
from torch import nn

import saccade

BATCH, LENGTH, KEYS, DIM, HEADS = 3, 5, 7, 12, 4


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor|.*nested tensors is in prototype")
        yield


def padding(lengths, size):
    return torch.arange(size) >= torch.tensor(lengths)[:, None]


OPTIONS = [
    {},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"bias": False},
    {"kdim": 11, "vdim": 13},
    {"batch_first": True},
    {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("masked", ["no", "padding", "queries", "heads", "both"])
def test_cross_attention(options, masked):
    layer = nn.MultiheadAttention(DIM, HEADS, dropout=0.3, **options).eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    sizes = [(BATCH, LENGTH, DIM), (BATCH, KEYS, options.get("kdim", DIM)), (BATCH, KEYS, options.get("vdim", DIM))]
    inputs = [torch.randn(size) for size in sizes]
    inputs = inputs if options.get("batch_first") else [part.transpose(0, 1) for part in inputs]
    given = {}
    if masked in ("padding", "both"):
        given["key_padding_mask"] = padding([7, 3, 5], KEYS)
    if masked in ("queries", "both"):
        given["attn_mask"] = torch.rand(LENGTH, KEYS).argsort(-1) < 3
    if masked == "heads":
        given["attn_mask"] = torch.randn(BATCH * HEADS, LENGTH, KEYS)
    with saccade.record(layer) as trace:
        output, _ = layer(*inputs, need_weights=False, **given)
    assert torch.equal(output, layer(*inputs, need_weights=False, **given)[0])
    _, expected = layer(*inputs, need_weights=True, average_attn_weights=False, **given)
    expected = expected.nan_to_num(0.0)  # rows that may attend nothing
    call = trace["MultiheadAttention"]
    assert call.shape == tuple(expected.shape)
    torch.testing.assert_close(call.weights, expected, rtol=0, atol=1e-6)


def test_without_a_batch():
    layer, x = nn.MultiheadAttention(DIM, HEADS), torch.randn(LENGTH, DIM)
    with saccade.record(layer) as trace:
        _, expected = layer(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(trace["MultiheadAttention"].weights[0], expected, rtol=0, atol=1e-6)


def test_dropout_is_left_out():
    layer, x = nn.MultiheadAttention(DIM, HEADS, dropout=0.5, batch_first=True), torch.randn(BATCH, LENGTH, DIM)
    with saccade.record(layer) as trace:
        layer(x, x, x)
    expected = layer.eval()(x, x, x, average_attn_weights=False)[1]
    torch.testing.assert_close(trace["MultiheadAttention"].weights, expected, rtol=0, atol=1e-6)


def expected_weights(encoder, x, pad):
    """Layer by layer, with the fast paths switched off."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        for layer in encoder.layers:
            y = layer.norm1(x) if layer.norm_first else x
            yield layer.self_attn(y, y, y, key_padding_mask=pad, average_attn_weights=False)[1]
            x = layer(x, src_key_padding_mask=pad)
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_encoder_keeps_its_fast_path(grad, norm_first, padded, monkeypatch):
    fast = []
    original = torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *args: fast.append(1) or original(*args))
    layer = nn.TransformerEncoderLayer(DIM, HEADS, 17, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, pad = torch.randn(BATCH, LENGTH, DIM), padding([5, 3, 4], LENGTH) if padded else None
    with torch.set_grad_enabled(grad):
        with saccade.record(encoder) as trace:
            output = encoder(x, src_key_padding_mask=pad)
        assert len(fast) == (0 if grad else 2)
        assert torch.equal(output, encoder(x, src_key_padding_mask=pad))
    assert list(trace) == ["layers.0.self_attn", "layers.1.self_attn"]
    real = torch.ones(BATCH, LENGTH, dtype=torch.bool) if pad is None else ~pad
    for call, expected in zip(trace.values(), expected_weights(encoder, x, pad), strict=True):
        assert call.shape == (BATCH, HEADS, LENGTH, LENGTH)
        found = call.weights.transpose(1, 2)[real]
        torch.testing.assert_close(found, expected.transpose(1, 2)[real], rtol=0, atol=1e-5)


def test_attention_keeps_its_fast_path(monkeypatch):
    fast = []
    original = torch._native_multi_head_attention
    monkeypatch.setattr(torch, "_native_multi_head_attention", lambda *args: fast.append(1) or original(*args))
    layer, x = nn.MultiheadAttention(DIM, HEADS, batch_first=True).eval(), torch.randn(BATCH, LENGTH, DIM)
    causal, pad = torch.ones(LENGTH, LENGTH).triu(1).bool(), padding([5, 3, 4], LENGTH)
    for given in ({}, {"attn_mask": causal}, {"key_padding_mask": pad}, {"attn_mask": causal, "key_padding_mask": pad}):
        with torch.no_grad():
            with saccade.record(layer) as trace:
                output = layer(x, x, x, need_weights=False, **given)[0]
            assert torch.equal(output, layer(x, x, x, need_weights=False, **given)[0])
        expected = layer(x, x, x, average_attn_weights=False, **given)[1]
        torch.testing.assert_close(trace["MultiheadAttention"].weights, expected, rtol=0, atol=1e-5)
    assert len(fast) == 8


def test_transformer():
    model = nn.Transformer(DIM, HEADS, 1, 2, 17, batch_first=True).eval()
    with saccade.record(model) as trace:
        model(torch.randn(BATCH, KEYS, DIM), torch.randn(BATCH, LENGTH, DIM))
    assert [(name, call.kind) for name, call in trace.items()] == [
        ("encoder.layers.0.self_attn", "self"),
        ("decoder.layers.0.self_attn", "self"),
        ("decoder.layers.0.multihead_attn", "cross"),
        ("decoder.layers.1.self_attn", "self"),
        ("decoder.layers.1.multihead_attn", "cross"),
    ]
    assert trace["decoder.layers.1.multihead_attn"].shape == (BATCH, HEADS, LENGTH, KEYS)


def test_unchanged_weights_leave_dropout_as_it_is():
    layer, x = nn.MultiheadAttention(DIM, HEADS, dropout=0.5, batch_first=True), torch.randn(BATCH, LENGTH, DIM)
    torch.manual_seed(5)
    expected = layer(x, x, x)
    torch.manual_seed(5)
    with saccade.record(layer, change={"*": lambda weights, mask, steps: weights}):
        found = layer(x, x, x)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_parameters_that_an_optimiser_changes_for_the_first_time():
    layer, x = nn.MultiheadAttention(DIM, HEADS, batch_first=True), torch.randn(BATCH, LENGTH, DIM)
    layer.load_state_dict({name: each.clone() for name, each in layer.state_dict().items()}, assign=True)
    optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
    with saccade.record(layer) as trace:
        output, expected = layer(x, x, x, average_attn_weights=False)
        output.square().sum().backward()
        optimiser.step()
    torch.testing.assert_close(trace["MultiheadAttention"].weights, expected, rtol=0, atol=1e-6)
