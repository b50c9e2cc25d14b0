import pytest
import torch

from saccade import Attention, masks
from saccade.scores import (
    AdditiveScore,
    ALiBi,
    BiaffineScore,
    ConvolutionalScore,
    CoverageScore,
    DotScore,
    FeatureWiseScore,
    LearnedRelativeBias,
    QueryFreeScore,
    RotaryScore,
    ScaledDotScore,
    SumScore,
)

from .literal import HIDDEN, KEY_DIM, assert_near, random_inputs, randomised

DIMS = {"query_dim": KEY_DIM, "key_dim": KEY_DIM}


def additive():
    return randomised(AdditiveScore(**DIMS, hidden_dim=HIDDEN))


def test_sums_are_sums():
    query, keys = random_inputs(same_dim=True)
    members = [ScaledDotScore(), additive(), randomised(QueryFreeScore(key_dim=KEY_DIM, hidden_dim=HIDDEN)), DotScore()]
    assert_near(SumScore(scores=members)(query, keys), sum(member(query, keys) for member in members))


def test_plus_makes_one_flat_sum():
    total = ScaledDotScore() + additive() + ALiBi()
    assert isinstance(total, SumScore)
    assert [type(member) for member in total.members] == [ScaledDotScore, AdditiveScore, ALiBi]
    assert [type(m) for m in (ALiBi() + (DotScore() + ALiBi())).members] == [ALiBi, DotScore, ALiBi]


def test_it_is_what_its_members_are():
    coverage = CoverageScore(**DIMS, hidden_dim=HIDDEN)
    convolutional = ConvolutionalScore(**DIMS, hidden_dim=3)
    pooling = QueryFreeScore(key_dim=KEY_DIM, hidden_dim=HIDDEN)
    plain = ScaledDotScore() + additive()
    assert (plain.query_dim, plain.key_dim) == (KEY_DIM, KEY_DIM)
    assert plain.pairwise
    assert plain.appendable
    assert not plain.stateful
    assert not plain.query_free
    assert (plain + coverage).stateful
    assert not (plain + convolutional).appendable
    assert not (plain + ALiBi()).pairwise
    assert (pooling + pooling).query_free
    assert not (pooling + plain).query_free


@pytest.mark.parametrize(
    "total",
    [
        lambda: ScaledDotScore() + ALiBi(),
        lambda: ALiBi() + ScaledDotScore(),
        lambda: RotaryScore(score=DotScore(), dim=10) + randomised(LearnedRelativeBias(max_distance=3)),
        lambda: randomised(BiaffineScore(**DIMS)),
        lambda: randomised(BiaffineScore(**DIMS)) + additive() + ALiBi(),
        lambda: DotScore() + randomised(BiaffineScore(**DIMS)),
    ],
)
@pytest.mark.parametrize("mask", [None, masks.causal(), masks.from_lengths([4, 0])], ids=["all", "causal", "lengths"])
def test_fused_reading_is_the_plain_one(total, mask):
    score = total()
    query, keys = random_inputs(same_dim=True)
    prepared = score.prepare(keys)
    dot = score.as_dot_product(query, prepared)
    assert dot is not None
    assert_near(dot.scores(), score.compare(query, prepared))
    reading = Attention(score=score)(query, keys, mask=mask)
    assert "not computed yet" in repr(reading)
    scores = score.compare(query, prepared)
    if mask is not None:
        scores = scores.masked_fill(~mask.tensor(3, 7), -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    assert_near(reading.context, weights @ keys)
    assert_near(reading.weights, weights)


def test_without_an_inner_product_there_is_no_fused_reading():
    query, keys = random_inputs(same_dim=True)
    score = additive() + ALiBi()
    assert score.as_dot_product(query, score.prepare(keys)) is None
    stateful = ScaledDotScore() + CoverageScore(**DIMS, hidden_dim=HIDDEN).double()
    assert stateful.as_dot_product(query, stateful.prepare(keys)) is None


def test_the_bias_of_positions_is_not_repeated_for_the_batch():
    query, keys = random_inputs(same_dim=True)
    score = ScaledDotScore() + ALiBi()
    dot = score.as_dot_product(query, score.prepare(keys))
    assert dot.bias.shape == (1, 3, 7)


def test_with_a_stateful_member_steps_are_taken_one_by_one():
    coverage = randomised(CoverageScore(**DIMS, hidden_dim=HIDDEN))
    query, keys = random_inputs(same_dim=True)
    score = ScaledDotScore() + coverage
    reading = Attention(score=score)(query, keys)
    prepared = coverage.prepare(keys)
    state = coverage.begin(query, prepared)
    for i in range(3):
        one = query[:, i : i + 1]
        weights = torch.softmax(ScaledDotScore()(one, keys) + coverage.compare(one, prepared, state), -1)
        assert_near(reading.weights[:, i : i + 1], weights)
        state = coverage.advance(state, weights, one, prepared)
    assert_near(reading.state.score[1][0].coverage, state[0].coverage)


def test_wrong_members():
    with pytest.raises(ValueError, match="at least one score, got an empty list"):
        SumScore(scores=[])
    with pytest.raises(ValueError, match="feature-wise score cannot be added"):
        DotScore() + FeatureWiseScore(**DIMS, hidden_dim=HIDDEN, num_channels=2)
