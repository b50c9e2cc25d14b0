import pytest
import torch

from saccade import Attention, masks
from saccade.scores import ConvolutionalScore

from .literal import BATCH, KEY_DIM, QUERIES, assert_near, randomised

CHANNELS, HIDDEN = 5, 3


def literal_convolution(inputs, weight, bias):
    """inputs (length, in), weight (out, in, width) -> (length, out); zeros beyond the ends, even widths lean right."""
    length, width = inputs.shape[0], weight.shape[-1]
    left = (width - 1) // 2
    rows = []
    for j in range(length):
        total = bias.clone()
        for w in range(width):
            if 0 <= j + w - left < length:
                total = total + weight[:, :, w] @ inputs[j + w - left]
        rows.append(total)
    return torch.stack(rows)


def literal_scores(score, q, keys):
    """One query over the keys of one row, all attendable."""
    first = literal_convolution(keys, score.conv_1.weight, score.conv_1.bias)
    first = torch.where(first > 0, first, 0.1 * first)
    second = literal_convolution(first, score.conv_2.weight, score.conv_2.bias) * q
    normed = second / second.square().sum().sqrt()
    return literal_convolution(normed, score.conv_att.weight, score.conv_att.bias)[:, 0]


def make(widths=(4, 3, 2)):
    return randomised(ConvolutionalScore(query_dim=CHANNELS, key_dim=KEY_DIM, hidden_dim=HIDDEN, widths=widths))


def inputs(keys=7):
    return (
        torch.randn(BATCH, QUERIES, CHANNELS, dtype=torch.float64),
        torch.randn(BATCH, keys, KEY_DIM, dtype=torch.float64),
    )


@pytest.mark.parametrize("widths", [(4, 3, 2), (1, 1, 1), (3, 9, 17)])
def test_equations(widths):
    score = make(widths)
    query, keys = inputs()
    made = score(query, keys)
    for b in range(BATCH):
        for i in range(QUERIES):
            assert_near(made[b, i], literal_scores(score, query[b, i], keys[b]))


def test_masked_keys_are_as_if_they_were_not_there():
    score = make()
    query, keys = inputs()
    lengths = [3, 7]
    reading = Attention(score=score)(query, keys, mask=masks.from_lengths(lengths))
    for b, length in enumerate(lengths):
        for i in range(QUERIES):
            expected = torch.softmax(literal_scores(score, query[b, i], keys[b, :length]), -1)
            assert_near(reading.weights[b, i, :length], expected)
            assert (reading.weights[b, i, length:] == 0).all()


def test_keys_shorter_than_the_filters():
    score = make((5, 7, 3))
    query, keys = inputs(keys=1)
    assert_near(score(query, keys)[0, 0], literal_scores(score, query[0, 0], keys[0]))


def test_features_of_zero_have_finite_gradients():
    score = make()
    query, keys = inputs()
    query = torch.zeros_like(query).requires_grad_()
    made = score(query, keys.requires_grad_())
    assert_near(made, score.conv_att.bias.expand_as(made))
    made.sum().backward()
    assert query.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in score.parameters())


def test_a_row_without_any_key_is_finite():
    score = make()
    query, keys = inputs()
    reading = Attention(score=score)(query, keys.requires_grad_(), mask=masks.from_lengths([0, 7]))
    assert (reading.context[0] == 0).all()
    reading.context.sum().backward()
    assert (keys.grad[0] == 0).all()
    assert keys.grad[1].abs().sum() > 0


def test_wrong_widths():
    with pytest.raises(ValueError, match=r"widths must be three numbers, each 1 or more, got \(3, 0, 2\)"):
        make((3, 0, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_row_without_any_key_is_finite_in_half_precision(dtype):
    score = ConvolutionalScore(query_dim=5, key_dim=KEY_DIM, hidden_dim=3, widths=(3, 5, 2)).to(dtype)
    query = (100 * torch.randn(2, QUERIES, 5)).to(dtype).requires_grad_()
    keys = torch.randn(2, 7, KEY_DIM).to(dtype)
    prepared = score.prepare(keys, mask=torch.tensor([[True], [False]]))
    scores = score.compare(query, prepared)
    (grad,) = torch.autograd.grad(scores.float().sum(), query)
    assert torch.isfinite(scores).all()
    assert torch.isfinite(grad).all()
    assert (scores[1] == score.conv_att.bias).all()
