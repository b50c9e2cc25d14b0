"""Additive, concat, MLP, neural tensor, feature-wise, monotonic energy, query-free."""

import pytest
import torch
from torch import nn

from saccade import Attention
from saccade.scores import (
    AdditiveScore,
    ConcatScore,
    FeatureWiseScore,
    MLPScore,
    MonotonicEnergyScore,
    NeuralTensorScore,
    QueryFreeScore,
)

from .literal import (
    BATCH,
    HIDDEN,
    KEY_DIM,
    KEYS,
    QUERIES,
    QUERY_DIM,
    assert_near,
    pair_by_pair,
    random_inputs,
    randomised,
)

DIMS = {"query_dim": QUERY_DIM, "key_dim": KEY_DIM}


def test_additive():
    score = randomised(AdditiveScore(**DIMS, hidden_dim=HIDDEN, bias=True))
    query, keys = random_inputs()
    w, u, b, v = score.query_proj.weight, score.key_proj.weight, score.key_proj.bias, score.hidden_proj.weight[0]
    assert_near(score(query, keys), pair_by_pair(lambda q, k: v @ torch.tanh(w @ q + u @ k + b), query, keys))


def test_additive_through_an_activation():
    score = randomised(AdditiveScore(**DIMS, hidden_dim=HIDDEN, activation=nn.Tanh()))
    query, keys = random_inputs()
    w, u, v = score.query_proj.weight, score.key_proj.weight, score.hidden_proj.weight[0]
    expected = pair_by_pair(lambda q, k: torch.tanh(v @ torch.tanh(w @ q + u @ k)), query, keys)
    assert_near(score(query, keys), expected)


def test_concat():
    score = randomised(ConcatScore(**DIMS, hidden_dim=HIDDEN))
    query, keys = random_inputs()
    w, v = score.proj.weight, score.hidden_proj.weight[0]
    assert_near(score(query, keys), pair_by_pair(lambda q, k: v @ torch.tanh(w @ torch.cat([q, k])), query, keys))


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("activation", [None, nn.Tanh()], ids=["default", "tanh"])
def test_mlp(num_layers, activation):
    score = randomised(MLPScore(**DIMS, hidden_dim=HIDDEN, num_layers=num_layers, activation=activation))
    query, keys = random_inputs()
    act = activation or nn.ReLU()

    def pair(q, k):
        hidden = act(score.proj(torch.cat([q, k])))
        for layer in score.hidden_layers:
            hidden = act(layer(hidden))
        return score.hidden_proj.weight[0] @ hidden

    assert len(score.hidden_layers) == num_layers - 1
    assert_near(score(query, keys), pair_by_pair(pair, query, keys))


def test_mlp_needs_a_layer():
    with pytest.raises(ValueError, match="num_layers must be 1 or more, got 0"):
        MLPScore(**DIMS, hidden_dim=HIDDEN, num_layers=0)


def test_neural_tensor():
    slices = 3
    score = randomised(NeuralTensorScore(**DIMS, num_slices=slices))
    query, keys = random_inputs()
    v = torch.cat([score.query_proj.weight, score.key_proj.weight], dim=1)
    b, w = score.key_proj.bias, score.hidden_proj.weight[0]

    def pair(q, k):
        forms = torch.stack([q @ score.weight[r] @ k for r in range(slices)])
        return w @ torch.tanh(forms + v @ torch.cat([q, k]) + b)

    assert_near(score(query, keys), pair_by_pair(pair, query, keys))


def test_neural_tensor_starts_with_slices_of_the_same_spread():
    score = NeuralTensorScore(query_dim=61, key_dim=67, num_slices=5)
    for form in score.weight:
        assert form.std().item() == pytest.approx((2 / (61 + 67)) ** 0.5, rel=0.05)


def test_feature_wise():
    channels = 17
    score = randomised(FeatureWiseScore(**DIMS, hidden_dim=HIDDEN, num_channels=channels))
    query, keys = random_inputs()
    w, u, b = score.query_proj.weight, score.key_proj.weight, score.key_proj.bias
    made = score(query, keys)
    assert made.shape == (BATCH, channels, QUERIES, KEYS)
    for channel, v in enumerate(score.hidden_proj.weight):
        assert_near(made[:, channel], pair_by_pair(lambda q, k, v=v: v @ torch.tanh(w @ q + u @ k + b), query, keys))


def test_feature_wise_reads_each_channel_by_its_own_weights():
    channels = 17
    score = randomised(FeatureWiseScore(**DIMS, hidden_dim=HIDDEN, num_channels=channels))
    query, keys = random_inputs()
    values = torch.randn(BATCH, KEYS, channels, dtype=torch.float64)
    mask = torch.arange(KEYS) < torch.tensor([4, 7])[:, None, None]
    reading = Attention(score=score)(query, keys, values, mask=mask)
    for channel in range(channels):
        scores = score(query, keys)[:, channel].masked_fill(~mask, -torch.inf)
        assert_near(
            reading.context[..., channel], (torch.softmax(scores, -1) @ values[..., channel : channel + 1])[..., 0]
        )


def test_monotonic_energy():
    score = randomised(MonotonicEnergyScore(**DIMS, hidden_dim=HIDDEN))
    query, keys = random_inputs()
    w, u, b, v = score.query_proj.weight, score.key_proj.weight, score.key_proj.bias, score.hidden_proj.weight[0]
    unit = v / v.square().sum().sqrt()

    def pair(q, k):
        return score.gain * (unit @ torch.tanh(w @ q + u @ k + b)) + score.offset

    assert_near(score(query, keys), pair_by_pair(pair, query, keys))


def test_monotonic_energy_starts_as_in_the_paper():
    score = MonotonicEnergyScore(**DIMS, hidden_dim=HIDDEN, offset=-4.0)
    assert score.gain.item() == pytest.approx(HIDDEN**-0.5)
    assert score.offset.item() == -4.0
    scaled = MonotonicEnergyScore(**DIMS, hidden_dim=HIDDEN)
    scaled.load_state_dict(score.state_dict())
    with torch.no_grad():
        scaled.hidden_proj.weight.mul_(31.0)
    query, keys = (x.float() for x in random_inputs())
    torch.testing.assert_close(scaled(query, keys), score(query, keys))


def test_query_free():
    score = randomised(QueryFreeScore(key_dim=KEY_DIM, hidden_dim=HIDDEN))
    query, keys = random_inputs()
    w, b, v = score.key_proj.weight, score.key_proj.bias, score.hidden_proj.weight[0]
    assert_near(score(query, keys), pair_by_pair(lambda q, k: v @ torch.tanh(w @ k + b), query, keys))


def test_query_free_without_a_hidden_layer():
    score = randomised(QueryFreeScore(key_dim=KEY_DIM))
    query, keys = random_inputs()
    w, b = score.key_proj.weight[0], score.key_proj.bias[0]
    assert_near(score(query, keys), pair_by_pair(lambda q, k: w @ k + b, query, keys))


def test_query_free_pools_without_a_query():
    score = randomised(QueryFreeScore(key_dim=KEY_DIM, hidden_dim=HIDDEN))
    query, keys = random_inputs()
    attention = Attention(score=score)
    pooled = attention(None, keys)
    assert pooled.context.shape == (BATCH, 1, KEY_DIM)
    assert_near(pooled.context.expand(-1, QUERIES, -1), attention(query, keys).context)
