"""Each fast path of `Attention.read` against `read_plain`: contexts, weights, gradients."""

import pytest
import torch

from saccade import Attention, MultiHead, State, masks
from saccade.aggregations import Expectation
from saccade.scores import AdditiveScore, BilinearScore, DotScore, NegativeDistanceScore, ScaledDotScore
from saccade.selections import Softmax, Sparsemax
from saccade.selections.local_m import LocalM
from saccade.selections.local_p import LocalP

BATCH, QUERIES, KEYS = 3, 13, 41

MASKS = {
    "none": lambda: None,
    "lengths": lambda: masks.from_lengths([41, 9, 0]),
    "over keys": lambda: torch.rand(BATCH, 1, KEYS) > 0.4,
    "causal": lambda: masks.causal(),
    "causal and lengths": lambda: masks.from_lengths([41, 9, 0]) & masks.causal(),
    "any": lambda: torch.rand(BATCH, QUERIES, KEYS) > 0.4,
}


def same_as_plain(attention, mask, path):
    attention = attention.double()
    query = torch.randn(BATCH, QUERIES, 5, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(BATCH, KEYS, 5, dtype=torch.float64, requires_grad=True)
    values = torch.randn(BATCH, KEYS, 7, dtype=torch.float64, requires_grad=True)
    memory = attention.prepare(keys, values, mask=mask)
    fast, plain = attention.read(query, memory), attention.read_plain(query, memory, State())
    assert type(fast._deferred).__name__ == path
    torch.testing.assert_close(fast.context, plain.context)
    torch.testing.assert_close(fast.weights, plain.weights)
    inputs = [query, keys, values, *attention.parameters()]
    towards = torch.randn_like(fast.context)
    fast_gradients = torch.autograd.grad((fast.context * towards).sum(), inputs, retain_graph=True)
    torch.testing.assert_close(fast_gradients, torch.autograd.grad((plain.context * towards).sum(), inputs))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", [ScaledDotScore(), BilinearScore(query_dim=5, key_dim=5)], ids=["dot", "bilinear"])
def test_fused(score, mask):
    same_as_plain(Attention(score=score), MASKS[mask](), "_Fused")


def test_fused_causal_with_as_many_queries_as_keys():
    x = torch.randn(2, 7, 5, dtype=torch.float64)
    attention = Attention(score=ScaledDotScore())
    memory = attention.prepare(x, mask=masks.causal())
    torch.testing.assert_close(attention.read(x, memory).context, attention.read_plain(x, memory, State()).context)


@pytest.mark.parametrize("mask", ["none", "lengths", "over keys"])
@pytest.mark.parametrize(
    "selection",
    [LocalM(half_width=3), LocalP(query_dim=5, half_width=3), LocalP(query_dim=5, half_width=3, renormalize=True)],
    ids=["local_m", "local_p", "local_p renormalised"],
)
@pytest.mark.parametrize("score", ["additive", "distance"])
def test_window(score, selection, mask):
    scores = {
        "additive": AdditiveScore(query_dim=5, key_dim=5, hidden_dim=11),
        "distance": NegativeDistanceScore(),
    }
    same_as_plain(Attention(score=scores[score], selection=selection), MASKS[mask](), "_Windowed")


def test_window_is_left_where_queries_differ_in_their_mask():
    attention = Attention(score=ScaledDotScore(), selection=LocalM(half_width=2))
    x = torch.randn(2, 23, 5)
    reading = attention(x, x, mask=masks.causal())
    assert reading._deferred is None
    assert (reading.weights.triu(1) == 0).all()


def test_window_with_heads_and_steps():
    attention = MultiHead(
        attention=Attention(score=ScaledDotScore(), selection=LocalM(half_width=2)), num_heads=3, query_dim=15
    ).double()
    query, keys = (torch.randn(2, n, 15, dtype=torch.float64) for n in (7, 31))
    memory = attention.prepare(keys, mask=masks.from_lengths([31, 11]))
    at_once = attention.read(query, memory)
    first = attention.read(query[:, :3], memory)
    rest = attention.read(query[:, 3:], memory, state=first.state)
    torch.testing.assert_close(torch.cat([first.context, rest.context], 1), at_once.context)
    assert at_once.weights.shape == (2, 3, 7, 31)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("block_size", [1, 8, 40])
def test_blocks(block_size, mask):
    score = AdditiveScore(query_dim=5, key_dim=5, hidden_dim=11)
    same_as_plain(Attention(score=score, block_size=block_size), MASKS[mask](), "_Plain")


def test_blocks_survive_scores_far_apart():
    attention = Attention(score=NegativeDistanceScore(), block_size=4)
    query, keys = 200 * torch.randn(2, 3, 5), 200 * torch.randn(2, 11, 5)
    memory = attention.prepare(keys)
    torch.testing.assert_close(
        attention.read(query, memory).context, attention.read_plain(query, memory, State()).context
    )


@pytest.mark.parametrize(
    "arguments",
    [{"block_size": 0}, {"block_size": 8, "dropout": 0.1}, {"block_size": 8, "selection": Sparsemax()}],
)
def test_blocks_are_refused_where_they_cannot_be(arguments):
    with pytest.raises(ValueError, match="block_size"):
        Attention(score=NegativeDistanceScore(), **arguments)


def test_a_temperature_is_not_fused():
    attention = Attention(score=ScaledDotScore(), selection=Softmax(temperature=0.5))
    x = torch.randn(2, 7, 5)
    reading = attention(x, x)
    assert reading._deferred is None
    torch.testing.assert_close(reading.weights, torch.softmax(2 * x @ x.mT / 5**0.5, -1))


def test_traits_decide_the_path_and_overriding_ends_them():
    class Sharp(Softmax):
        def select(self, scores, mask, *, query, prepared, state):
            return super().select(3 * scores, mask, query=query, prepared=prepared, state=state)

    class Doubled(Expectation):
        def forward(self, weights, values, **parts):
            return 2 * weights @ values

    class Mine(Softmax):
        """The same under a name of the user's own."""

    query, keys = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    plain = Attention(score=DotScore())(query, keys).context
    sharp = Attention(score=DotScore(), selection=Sharp())(query, keys)
    torch.testing.assert_close(sharp.context, (3 * query @ keys.mT).softmax(-1) @ keys)
    torch.testing.assert_close(Attention(score=DotScore(), aggregation=Doubled())(query, keys).context, 2 * plain)
    mine = Attention(score=DotScore(), selection=Mine())(query, keys)
    assert "not computed yet" in repr(mine)  # fused: the weights were not needed
    assert "not computed yet" not in repr(sharp)
    torch.testing.assert_close(mine.context, plain)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float64, torch.inf), (torch.float16, 60000.0)])
def test_values_that_are_not_finite_or_overflow_a_sum_cost_no_second_reading(dtype, size, monkeypatch):
    attention = Attention(score=DotScore())
    query, keys = torch.zeros(2, 3, 5, dtype=dtype), torch.randn(2, 7, 5).to(dtype)
    values = torch.full((2, 7, 4), size, dtype=dtype)
    monkeypatch.setattr(attention, "read_plain", lambda *parts: pytest.fail("read twice"))
    context = attention(query, keys, values).context
    torch.testing.assert_close(context, torch.full_like(context, size), rtol=1e-2, atol=0)


@pytest.mark.parametrize("mask", ["window", "window and lengths"])
@pytest.mark.parametrize("selection", [Softmax(), Sparsemax()], ids=["softmax", "sparsemax"])
def test_near_keys_alone(selection, mask):
    """Queries at the end of a long memory, under a window: the keys before it are not scored."""
    near = masks.window(4, 0)
    seen = []
    attention = Attention(score=AdditiveScore(query_dim=5, key_dim=5, hidden_dim=7), selection=selection)
    compare = attention.score.compare
    attention.score.compare = lambda query, keys, state=None: seen.append(keys.shape[-2]) or compare(query, keys, state)
    same_as_plain(attention, near if mask == "window" else near & masks.from_lengths([41, 39, 0]), "_Plain")
    assert seen[0] == QUERIES + 4 < KEYS
