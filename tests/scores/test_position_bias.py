"""ALiBi, learned and T5 relative biases."""

import math

import pytest
import torch

from saccade import Attention, MultiHead, masks
from saccade.scores import AdditiveScore, ALiBi, CoverageScore, LearnedRelativeBias, ScaledDotScore, T5RelativeBias
from saccade.scores.alibi import alibi_slopes

HEADS = 3
KINDS = {
    "alibi": lambda heads: ALiBi(num_heads=heads),
    "learned": lambda heads: LearnedRelativeBias(num_heads=heads, max_distance=4),
    "t5": lambda heads: T5RelativeBias(num_heads=heads, num_buckets=8, max_distance=11),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind, heads=1):
    bias = KINDS[kind](heads).double()
    with torch.no_grad():
        for parameter in bias.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return bias


def test_slopes():
    assert alibi_slopes(8) == [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    assert alibi_slopes(1) == [2.0**-8]
    assert alibi_slopes(2) == [2.0**-4, 2.0**-8]
    # Twelve heads: the eight of eight heads, then the first, third, fifth, seventh of sixteen.
    sixteen = [2.0 ** (-0.5 * i) for i in range(1, 17)]
    assert alibi_slopes(12) == pytest.approx(alibi_slopes(8) + sixteen[0:8:2])
    assert alibi_slopes(3) == pytest.approx([2.0**-4, 2.0**-8, 2.0**-2])
    for heads in range(1, 40):
        assert len(alibi_slopes(heads)) == heads == len(set(alibi_slopes(heads)))


def test_alibi():
    heads, queries, keys = 3, 5, 11
    bias = ALiBi(num_heads=heads)(torch.zeros(2, heads, queries, 1), torch.zeros(2, heads, keys, 1))
    assert bias.shape == (2, heads, queries, keys)
    for h, slope in enumerate(alibi_slopes(heads)):
        for i in range(queries):
            for j in range(keys):
                assert bias[1, h, i, j].item() == pytest.approx(-slope * abs(keys - queries + i - j))


def test_alibi_rounds_only_once_in_half_precision():
    bias = ALiBi(num_heads=2).bfloat16()(torch.zeros(2, 1, 1).bfloat16(), torch.zeros(2, 1001, 1).bfloat16())
    distance = torch.arange(1000, -1, -1)
    exact = -distance * torch.tensor([[2.0**-4], [2.0**-8]])
    assert torch.equal(bias[:, 0], exact.bfloat16())


def test_learned():
    heads, queries, keys, reach = 3, 5, 11, 4
    score = make("learned", heads)
    bias = score(torch.zeros(2, heads, queries, 1).double(), torch.zeros(2, heads, keys, 1).double())
    for h in range(heads):
        for i in range(queries):
            for j in range(keys):
                distance = j - (keys - queries + i)
                assert bias[1, h, i, j] == score.table[h, reach + max(-reach, min(reach, distance))]


def published_bucket(relative_position, bidirectional, num_buckets, max_distance):
    """The published formula for one memory position minus query position, in Python's numbers."""
    bucket = 0
    n = -relative_position
    if bidirectional:
        num_buckets //= 2
        bucket += num_buckets * int(n < 0)
        n = abs(n)
    else:
        n = max(n, 0)
    max_exact = num_buckets // 2
    if n < max_exact:
        return bucket + n
    far = max_exact + int(math.log(n / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact))
    return bucket + min(far, num_buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 20), (64, 500), (4, 3)])
def test_t5_buckets(bidirectional, num_buckets, max_distance):
    score = T5RelativeBias(num_buckets=num_buckets, max_distance=max_distance, bidirectional=bidirectional)
    if bidirectional is False and num_buckets == 4:
        score = T5RelativeBias(num_buckets=4, max_distance=5, bidirectional=False)
    distance = torch.arange(-700, 701)
    expected = [published_bucket(int(d), bidirectional, score.num_buckets, score.max_distance) for d in distance]
    made = score.bucket(distance)
    assert made.tolist() == expected
    assert set(made.tolist()) <= set(range(num_buckets))


def test_t5():
    heads, queries, keys = 3, 5, 23
    score = make("t5", heads)
    bias = score(torch.zeros(2, heads, queries, 1).double(), torch.zeros(2, heads, keys, 1).double())
    for h in range(heads):
        for i in range(queries):
            for j in range(keys):
                bucket = published_bucket(j - (keys - queries + i), True, 8, 11)
                assert bias[1, h, i, j] == score.table[h, bucket]


@every_kind
def test_one_head_needs_no_heads_dimension(kind):
    score = make(kind)
    query, keys = torch.zeros(5, 1).double(), torch.zeros(11, 1).double()
    one = score(query, keys)
    assert one.shape == (5, 11)
    torch.testing.assert_close(score(query.expand(2, 7, 5, 1), keys.expand(2, 7, 11, 1)), one.expand(2, 7, 5, 11))


@every_kind
def test_added_to_any_score(kind):
    bias = make(kind, HEADS)
    query, keys = torch.randn(2, HEADS, 5, 7).double(), torch.randn(2, HEADS, 11, 7).double()
    values = torch.randn(2, HEADS, 11, 13).double()
    mask = masks.from_lengths(torch.tensor([[4], [11]])) & masks.causal()
    for other in (ScaledDotScore(), AdditiveScore(query_dim=7, key_dim=7, hidden_dim=17).double()):
        reading = Attention(score=other + bias)(query, keys, values, mask=mask)
        scores = other(query, keys) + bias(query, keys)
        weights = torch.softmax(scores.masked_fill(~mask.tensor(5, 11), -torch.inf), -1)
        torch.testing.assert_close(reading.weights, weights)
        torch.testing.assert_close(reading.context, weights @ values)


@pytest.mark.parametrize("kind", ["learned", "t5"])
def test_gradients_reach_the_table_through_the_fused_reading(kind):
    bias = make(kind, HEADS)
    query, keys = torch.randn(2, HEADS, 5, 7).double(), torch.randn(2, HEADS, 11, 7).double()
    Attention(score=ScaledDotScore() + bias)(query, keys).context.square().sum().backward()
    for parameter in bias.parameters():
        assert parameter.grad.abs().sum() > 0


@every_kind
def test_one_query_against_a_growing_memory_is_the_last_one(kind):
    attention = MultiHead(
        attention=Attention(score=ScaledDotScore() + make(kind, 2)), num_heads=2, query_dim=6
    ).double()
    x = torch.randn(3, 7, 6).double()
    at_once = attention(x, mask=masks.causal()).context
    memory = attention.prepare(x[:, :1])
    steps = [attention.read(x[:, :1], memory).context]
    for i in range(1, 7):
        memory = memory.append(x[:, i : i + 1])
        steps.append(attention.read(x[:, i : i + 1], memory).context)
    torch.testing.assert_close(torch.cat(steps, dim=1), at_once)


@every_kind
@pytest.mark.parametrize("heads", [1, HEADS])
def test_beside_a_score_with_a_memory_queries_keep_their_places(kind, heads):
    """One query at a time must give the places that all queries at once have."""
    bias = make(kind, heads)
    coverage = CoverageScore(query_dim=7, key_dim=7, hidden_dim=13).double()
    torch.nn.init.zeros_(coverage.hidden_proj.weight)  # coverage says nothing: what is left is the bias
    query, keys = torch.randn(2, heads, 5, 7).double(), torch.randn(2, heads, 11, 7).double()
    reading = Attention(score=coverage + bias)(query, keys)
    torch.testing.assert_close(reading.weights, torch.softmax(bias(query, keys), -1))


def test_heads_must_fit():
    with pytest.raises(ValueError, match=r"ALiBi was built with num_heads=3.*got \(2, 4, 5, 7\)"):
        ALiBi(num_heads=3)(torch.zeros(2, 4, 5, 7), torch.zeros(2, 4, 11, 7))
    with pytest.raises(ValueError, match="num_heads=3"):
        ALiBi(num_heads=3)(torch.zeros(5, 7), torch.zeros(11, 7))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="num_heads must be 1 or more, got 0"):
        ALiBi(num_heads=0)
    with pytest.raises(ValueError, match="max_distance must be 0 or more, got -1"):
        LearnedRelativeBias(max_distance=-1)
    with pytest.raises(ValueError, match=r"num_buckets must be .* got 7"):
        T5RelativeBias(num_buckets=7)
    with pytest.raises(ValueError, match=r"max_distance must be above 8.*got 8"):
        T5RelativeBias(num_buckets=32, max_distance=8)
