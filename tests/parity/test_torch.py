"""The same numbers as PyTorch's own attention, on equal weights."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from saccade import Attention, MultiHead, masks
from saccade.scores import AdditiveScore, DotScore, ScaledDotScore
from saccade.selections import Softmax

BATCH, QUERIES, KEYS, DIM, VALUE = 2, 5, 13, 7, 11


@pytest.fixture
def tensors():
    made = [torch.randn(BATCH, 3, n, d) for n, d in ((QUERIES, DIM), (KEYS, DIM), (KEYS, VALUE))]
    return [tensor.double().requires_grad_() for tensor in made]


MASKS = {
    "none": lambda: None,
    "rows": lambda: torch.rand(QUERIES, KEYS) > 0.3,
    "keys": lambda: torch.rand(BATCH, 1, 1, KEYS) > 0.3,
    "full": lambda: torch.rand(BATCH, 3, QUERIES, KEYS) > 0.3,
}

# The last selection goes the plain way: its temperature is one but not known to be.
WAYS = {"fused": Softmax(), "plain": Softmax(learn_temperature=True)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("way", WAYS)
def test_scaled_dot_product_attention(tensors, mask, way):
    mask = MASKS[mask]()
    theirs = F.scaled_dot_product_attention(*tensors, attn_mask=mask)
    ours = Attention(score=ScaledDotScore(), selection=WAYS[way])(*tensors, mask=mask).context
    torch.testing.assert_close(ours, theirs)
    towards = torch.randn_like(theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, tensors, towards), torch.autograd.grad(theirs, tensors, towards)
    )


@pytest.mark.parametrize("way", WAYS)
def test_scaled_dot_product_attention_causal(way):
    query, keys, values = (torch.randn(BATCH, KEYS, d).double() for d in (DIM, DIM, VALUE))
    theirs = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
    ours = Attention(score=ScaledDotScore(), selection=WAYS[way])(query, keys, values, mask=masks.causal())
    torch.testing.assert_close(ours.context, theirs)


@pytest.mark.parametrize("way", WAYS)
def test_scaled_dot_product_attention_without_scale(tensors, way):
    theirs = F.scaled_dot_product_attention(*tensors, scale=1.0)
    torch.testing.assert_close(Attention(score=DotScore(), selection=WAYS[way])(*tensors).context, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scaled_dot_product_attention_in_low_precision(tensors, dtype):
    tensors = [tensor.detach().to(dtype) for tensor in tensors]
    theirs = F.scaled_dot_product_attention(*tensors)
    torch.testing.assert_close(Attention(score=ScaledDotScore())(*tensors).context, theirs)


def test_the_weights_are_torch_softmax():
    scores = torch.randn(BATCH, QUERIES, KEYS).double()
    torch.testing.assert_close(Softmax()(scores).marginals, torch.softmax(scores, -1))
    categorical = torch.distributions.Categorical(logits=scores)
    ours = Softmax()(scores)
    torch.testing.assert_close(ours.entropy(), categorical.entropy())
    z = F.one_hot(categorical.sample(), KEYS).double()
    torch.testing.assert_close(ours.log_prob(z), categorical.log_prob(z.argmax(-1)))


HEADS, EMBED, KDIM, VDIM = 3, 21, 11, 17


def twins(*, separate: bool, bias: bool = True):
    """nn.MultiheadAttention and MultiHead with the same weights, none of them zero."""
    dims = {"kdim": KDIM, "vdim": VDIM} if separate else {}
    theirs = nn.MultiheadAttention(EMBED, HEADS, batch_first=True, bias=bias, **dims).double()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    ours = MultiHead(
        attention=Attention(score=ScaledDotScore()),
        num_heads=HEADS,
        query_dim=EMBED,
        key_dim=KDIM if separate else None,
        value_dim=VDIM if separate else None,
        bias=bias,
    ).double()
    if separate:
        weights = [theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight]
    else:
        weights = theirs.in_proj_weight.chunk(3)
    projections = [ours.query_proj, ours.key_proj, ours.value_proj]
    with torch.no_grad():
        for i, (proj, weight) in enumerate(zip(projections, weights, strict=True)):
            proj.weight.copy_(weight)
            if bias:
                proj.bias.copy_(theirs.in_proj_bias.chunk(3)[i])
        ours.output_proj.weight.copy_(theirs.out_proj.weight)
        if bias:
            ours.output_proj.bias.copy_(theirs.out_proj.bias)
    return ours, theirs


def given(separate):
    sizes = (EMBED, KDIM, VDIM) if separate else (EMBED,) * 3
    lengths = (QUERIES, KEYS, KEYS)
    return [torch.randn(BATCH, n, d).double().requires_grad_() for n, d in zip(lengths, sizes, strict=True)]


@pytest.mark.parametrize("separate", [False, True], ids=["one size", "kdim and vdim"])
@pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "with weights"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_multihead_attention(separate, need_weights, training, bias):
    ours, theirs = twins(separate=separate, bias=bias)
    ours.train(training)
    theirs.train(training)
    tensors = given(separate)
    expected, weights = theirs(*tensors, need_weights=need_weights, average_attn_weights=False)
    reading = ours(*tensors)
    torch.testing.assert_close(reading.context, expected)
    if need_weights:
        torch.testing.assert_close(reading.weights, weights)
    towards = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(reading.context, tensors, towards), torch.autograd.grad(expected, tensors, towards)
    )


@pytest.mark.parametrize("separate", [False, True], ids=["one size", "kdim and vdim"])
def test_multihead_attention_with_masks(separate):
    ours, theirs = twins(separate=separate)
    tensors = given(separate)
    lengths = torch.tensor([13, 4])
    padding = torch.arange(KEYS) >= lengths[:, None]  # there, True = padding
    forbidden = torch.rand(QUERIES, KEYS) > 0.7
    forbidden[:, 0] = False
    expected, weights = theirs(
        *tensors, key_padding_mask=padding, attn_mask=forbidden, need_weights=True, average_attn_weights=False
    )
    reading = ours(*tensors, mask=masks.from_lengths(lengths) & ~forbidden)
    torch.testing.assert_close(reading.context, expected)
    torch.testing.assert_close(reading.weights, weights)
    averaged = theirs(*tensors, key_padding_mask=padding, attn_mask=forbidden)[1]
    torch.testing.assert_close(reading.weights.mean(1), averaged)
    same = ours(*tensors, mask=~padding[:, None, :] & ~forbidden)
    torch.testing.assert_close(same.context, expected)


def test_multihead_attention_causal_self_attention():
    ours, theirs = twins(separate=False)
    x = torch.randn(BATCH, KEYS, EMBED).double()
    forbidden = nn.Transformer.generate_square_subsequent_mask(KEYS, dtype=torch.float64)
    expected, _ = theirs(x, x, x, attn_mask=forbidden, is_causal=True, need_weights=False)
    torch.testing.assert_close(ours(x, mask=masks.causal()).context, expected)


def test_multihead_attention_parameter_gradients():
    ours, theirs = twins(separate=False)
    tensors = given(False)
    ours(*tensors).context.square().sum().backward()
    theirs(*tensors)[0].square().sum().backward()
    projections = [ours.query_proj, ours.key_proj, ours.value_proj]
    torch.testing.assert_close(torch.cat([p.weight.grad for p in projections]), theirs.in_proj_weight.grad)
    torch.testing.assert_close(torch.cat([p.bias.grad for p in projections]), theirs.in_proj_bias.grad)
    torch.testing.assert_close(ours.output_proj.weight.grad, theirs.out_proj.weight.grad)


def test_empty_rows_are_numbers_where_multihead_attention_has_none():
    ours, theirs = twins(separate=False)
    tensors = given(False)
    padding = torch.tensor([[True] * KEYS, [False] * KEYS])
    expected, _ = theirs(*tensors, key_padding_mask=padding)
    reading = ours(*tensors, mask=~padding[:, None, :])
    assert expected[0].isnan().all()
    torch.testing.assert_close(reading.context[0], ours.output_proj.bias.expand(QUERIES, EMBED))
    torch.testing.assert_close(reading.context[1], expected[1])


def test_additive_score_is_the_broadcast_form():
    score = AdditiveScore(query_dim=DIM, key_dim=VALUE, hidden_dim=17, bias=True).double()
    query, keys = torch.randn(BATCH, QUERIES, DIM).double(), torch.randn(BATCH, KEYS, VALUE).double()
    hidden = torch.tanh(score.query_proj(query)[:, :, None] + score.key_proj(keys)[:, None])
    torch.testing.assert_close(score(query, keys), score.hidden_proj(hidden).squeeze(-1))
