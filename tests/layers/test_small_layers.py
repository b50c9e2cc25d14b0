import math

import pytest
import torch

from saccade.layers import ConvolutionBlock, LearnedPositions, Maxout, SinusoidalPositions, TokenEmbedding
from saccade.layers.choices import make_score, make_selection
from saccade.scores import AdditiveScore, T5RelativeBias


def test_maxout_takes_the_larger_of_each_pair():
    layer = Maxout(input_dim=3, output_dim=5)
    x = torch.randn(2, 3)
    units = layer.proj(x)
    expected = torch.stack([units[:, 2 * k : 2 * k + 2].max(1).values for k in range(5)], dim=1)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("dim", [6, 7])
def test_sinusoids_also_of_odd_size(dim):
    table = SinusoidalPositions(dim=dim)(5, start=3)
    assert table.shape == (5, dim)
    for t in range(5):
        for i in range(dim):
            angle = (t + 3) / 10000 ** (2 * (i // 2) / dim)
            assert table[t, i].item() == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-5)


def test_learned_positions_end():
    positions = LearnedPositions(dim=3, max_length=5)
    assert torch.equal(positions(2, start=3), positions.table[3:])
    with pytest.raises(ValueError, match="max_length=5"):
        positions(2, start=4)


def test_embedding_scales_and_adds_positions():
    embedding = TokenEmbedding(vocab_size=11, dim=7, scale=True, positions="sinusoidal")
    tokens = torch.tensor([[3, 4, 5]])
    expected = embedding.weight[tokens] * 7**0.5 + SinusoidalPositions(dim=7)(3, 2)
    torch.testing.assert_close(embedding(tokens, start=2), expected)
    with pytest.raises(ValueError, match="sinusoidal"):
        TokenEmbedding(vocab_size=11, dim=7, positions="sinusoid")


@pytest.mark.parametrize("activation", ["tanh", "relu", "glu"])
def test_convolution_sees_zeros_for_padding(activation):
    torch.manual_seed(0)
    block = ConvolutionBlock(dim=3, kernel_size=5, activation=activation).double()
    mask = torch.arange(7) < torch.tensor([[7], [2]])
    inputs = torch.randn(2, 7, 3, dtype=torch.float64)
    outputs = block(inputs, mask)
    torch.testing.assert_close(outputs[1:, :2], block(inputs[1:, :2], mask[1:, :2]))
    assert not outputs[1, 2:].any()


def test_convolution_needs_a_middle():
    with pytest.raises(ValueError, match="odd"):
        ConvolutionBlock(dim=3, kernel_size=4)


def test_choices_fill_in_the_sizes_that_fit():
    sizes = {"query_dim": 3, "key_dim": 5, "hidden_dim": 7, "num_heads": 2}
    score = make_score("additive", **sizes)
    assert isinstance(score, AdditiveScore)
    assert score.key_proj.weight.shape == (7, 5)
    bias = make_score("t5_relative_bias", **sizes)
    assert isinstance(bias, T5RelativeBias)
    assert bias.num_heads == 2
    assert make_selection("local_p", **sizes).query_dim == 3
    copied = make_score(score)
    assert copied is not score
    with pytest.raises(ValueError, match="sparsemax"):
        make_selection("sparsmax", **sizes)
