import pytest
import torch

from saccade import Attention, MultiHead, masks
from saccade.scores import BilinearScore, CosineScore, CoverageScore, DotScore, RotaryScore, ScaledDotScore
from saccade.scores.rotary import rotate

BASE = 100.0


def turned(vectors, positions, base):
    """The paper's form: features in pairs are complex numbers, multiplied by exp(i m theta_p)."""
    features = vectors.shape[-1]
    pairs = torch.view_as_complex(vectors.reshape(*vectors.shape[:-1], features // 2, 2).contiguous())
    theta = torch.tensor([base ** (-2 * p / features) for p in range(features // 2)], dtype=torch.float64)
    factors = torch.polar(torch.ones(len(positions), features // 2).double(), torch.outer(positions.double(), theta))
    return torch.view_as_real(pairs * factors).flatten(-2)


def test_rotation_is_complex_multiplication():
    vectors, positions = torch.randn(2, 7, 10).double(), torch.arange(3, 10)
    made = rotate(vectors, positions.unsqueeze(-1), 10, BASE)
    torch.testing.assert_close(made, turned(vectors, positions, BASE))
    torch.testing.assert_close(made.norm(dim=-1), vectors.norm(dim=-1))


@pytest.mark.parametrize("inner", [DotScore(), ScaledDotScore(), CosineScore()], ids=lambda s: type(s).__name__)
def test_scores(inner):
    query, keys = torch.randn(2, 5, 10).double(), torch.randn(2, 11, 10).double()
    expected = inner(turned(query, torch.arange(6, 11), BASE), turned(keys, torch.arange(11), BASE))
    torch.testing.assert_close(RotaryScore(score=inner, base=BASE)(query, keys), expected)


def test_only_the_distance_matters():
    q, k = torch.randn(10).double(), torch.randn(10).double()
    keys = torch.zeros(2, 23, 10).double()
    keys[0, 4], keys[1, 17] = k, k
    score = RotaryScore(base=BASE)
    scores = score(q.expand(2, 23, 10), keys)
    for distance in range(-4, 6):
        torch.testing.assert_close(scores[0, 4 + distance, 4], scores[1, 17 + distance, 17])
    assert scores[0, :, 4].std() > 0.01


def test_partial_rotation_leaves_the_rest():
    query, keys = torch.randn(2, 5, 11).double(), torch.randn(2, 7, 11).double()
    expected = DotScore()(
        turned(query[..., :4], torch.arange(2, 7), BASE), turned(keys[..., :4], torch.arange(7), BASE)
    )
    expected = expected + query[..., 4:] @ keys[..., 4:].transpose(-1, -2)
    torch.testing.assert_close(RotaryScore(score=DotScore(), dim=4, base=BASE)(query, keys), expected)


def test_it_stays_fused():
    query, keys = torch.randn(2, 5, 10).double(), torch.randn(2, 7, 10).double()
    score = RotaryScore()
    dot = score.as_dot_product(query, score.prepare(keys))
    assert dot.bias is None
    reading = Attention(score=score)(query, keys, mask=masks.causal())
    assert "not computed yet" in repr(reading)
    weights = torch.softmax(score(query, keys).masked_fill(~masks.causal().tensor(5, 7), -torch.inf), -1)
    torch.testing.assert_close(reading.context, weights @ keys)


def test_growing_memory():
    attention = MultiHead(attention=Attention(score=RotaryScore()), num_heads=3, query_dim=12, num_key_heads=1).double()
    x = torch.randn(2, 7, 12).double()
    at_once = attention(x, mask=masks.causal()).context
    memory = attention.prepare(x[:, :1])
    steps = [attention.read(x[:, :1], memory).context]
    for i in range(1, 7):
        memory = memory.append(x[:, i : i + 1])
        steps.append(attention.read(x[:, i : i + 1], memory).context)
    torch.testing.assert_close(torch.cat(steps, dim=1), at_once)


def test_beside_a_score_with_a_memory():
    coverage = CoverageScore(query_dim=10, key_dim=10, hidden_dim=13).double()
    torch.nn.init.zeros_(coverage.hidden_proj.weight)
    query, keys = torch.randn(2, 3, 5, 10).double(), torch.randn(2, 3, 7, 10).double()
    reading = Attention(score=coverage + RotaryScore())(query, keys)
    torch.testing.assert_close(reading.weights, torch.softmax(RotaryScore()(query, keys), -1))


def test_far_positions_in_half_precision():
    vectors = torch.randn(1, 10)
    position = torch.tensor([[5003]])
    made = rotate(vectors.bfloat16(), position, 10, 10000.0)
    torch.testing.assert_close(made.float(), rotate(vectors, position, 10, 10000.0), rtol=0.0, atol=0.06)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="dim must be an even number, 2 or more, got 5"):
        RotaryScore(dim=5)
    with pytest.raises(ValueError, match=r"keys of shape \(7, 5\) has 5 features.*rotates 5"):
        RotaryScore()(torch.randn(3, 5), torch.randn(7, 5))
    with pytest.raises(ValueError, match=r"keys of shape \(7, 6\) has 6 features.*rotates 8"):
        RotaryScore(dim=8)(torch.randn(3, 6), torch.randn(7, 6))
    with pytest.raises(TypeError, match=r"score must be DotScore.*got BilinearScore"):
        RotaryScore(score=BilinearScore(query_dim=4, key_dim=4))
    with pytest.raises(ValueError, match="base must be above 0"):
        RotaryScore(base=0.0)
    with pytest.raises(ValueError, match="needs queries and keys of the same size"):
        RotaryScore()(torch.randn(3, 4), torch.randn(7, 6))
