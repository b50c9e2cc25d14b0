"""What once went wrong in the core, and must not again."""

import pytest
import torch

from saccade import Attention, MultiHead, State, masks
from saccade.losses import coverage_loss
from saccade.scores import AdditiveScore, BiaffineScore, CoverageScore, QueryFreeScore, ScaledDotScore
from saccade.selections import LocalM, LocalP, Softmax


def additive(dim=5, **arguments):
    return Attention(score=AdditiveScore(query_dim=dim, key_dim=dim, hidden_dim=7), **arguments)


@pytest.mark.parametrize("path", ["fast", "plain"])
@pytest.mark.parametrize("selection", [LocalM(half_width=2), LocalP(query_dim=5, half_width=3)], ids=["m", "p"])
def test_windows_stay_in_place_in_half_precision(selection, path):
    query, keys = torch.randn(1, 601, 5).bfloat16().float(), torch.randn(1, 601, 5).bfloat16().float()
    attention = Attention(score=ScaledDotScore(), selection=selection.bfloat16().float())
    exact = attention(query, keys).weights > 0
    half = attention.to(torch.bfloat16)
    memory = half.prepare(keys.bfloat16())
    read = half.read if path == "fast" else lambda q, m: half.read_plain(q, m, State())
    assert ((read(query.bfloat16(), memory).weights > 0) == exact).all()
    attention.float()


def test_local_p_predicts_the_same_position_under_autocast():
    attention = Attention(score=ScaledDotScore(), selection=LocalP(query_dim=5, half_width=3))
    query, keys = torch.randn(2, 7, 5), torch.randn(2, 4099, 5)
    expected = attention(query, keys).weights > 0
    with torch.autocast("cpu", torch.bfloat16):
        assert ((attention(query, keys).weights > 0) == expected).all()


def test_blocks_train_under_autocast():
    layer = MultiHead(attention=additive(block_size=2), num_heads=3, query_dim=15)
    x = torch.randn(2, 11, 15, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        context = layer(x).context
    context.float().sum().backward()
    assert x.grad.isfinite().all()


def test_blocks_sum_in_single_precision():
    attention = additive(block_size=16).bfloat16()
    query, keys = torch.randn(1, 3, 5).bfloat16(), torch.randn(1, 4099, 5).bfloat16()
    memory = attention.prepare(keys)
    exact = attention.float().read_plain(query.float(), attention.prepare(keys.float()), State()).context
    attention.bfloat16()
    torch.testing.assert_close(attention.read(query, memory).context.float(), exact, atol=3e-3, rtol=0.0)


@pytest.mark.parametrize(
    "attention", [additive(block_size=2), Attention(score=ScaledDotScore(), selection=LocalM(half_width=1)), additive()]
)
@pytest.mark.parametrize(
    "mask",
    [torch.ones(3, 1, 7, dtype=torch.bool), torch.ones(2, 1, 5, dtype=torch.bool), masks.from_lengths([5, 6, 7])],
)
def test_masks_that_do_not_fit_are_refused_by_every_path(attention, mask):
    with pytest.raises(ValueError, match="mask of shape"):
        attention(torch.randn(2, 3, 5), torch.randn(2, 7, 5), mask=mask)


@pytest.mark.parametrize(
    "attention",
    [
        Attention(score=ScaledDotScore()),
        Attention(score=ScaledDotScore(), selection=LocalM(half_width=1)),
        additive(block_size=2),
    ],
    ids=["fused", "window", "blocks"],
)
def test_scores_that_are_not_finite_are_refused_by_every_path(attention):
    query, keys = torch.randn(2, 3, 5), torch.randn(2, 11, 5)
    query[1, 2, 0] = torch.nan
    with pytest.raises(ValueError, match=r"scores must be finite.*\(1, 2, "):
        attention(query, keys)


@pytest.mark.parametrize("score", [ScaledDotScore(), AdditiveScore(query_dim=5, key_dim=5, hidden_dim=7)])
@pytest.mark.parametrize("garbage", [torch.nan, torch.inf])
def test_nothing_in_padding_reaches_the_context(score, garbage):
    query, keys, values = torch.randn(2, 3, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 7)
    attention = Attention(score=score)
    mask = masks.from_lengths([11, 4])
    expected = attention(query, keys, values, mask=mask)
    keys[1, 4:], values[1, 4:] = garbage, garbage
    values.requires_grad_()
    reading = attention(query, keys, values, mask=mask)
    torch.testing.assert_close(reading.context, expected.context)
    torch.testing.assert_close(reading.weights, expected.weights)
    reading.context.sum().backward()
    assert values.grad.isfinite().all()


def test_a_look_without_gradients_leaves_them_to_later_looks():
    query = torch.randn(2, 3, 5, requires_grad=True)
    reading = Attention(score=ScaledDotScore())(query, torch.randn(2, 7, 5))
    with torch.no_grad():
        reading.weights.mean()
    assert reading.weights.requires_grad


def test_blocks_serve_inner_products_with_a_bias():
    attention = Attention(score=BiaffineScore(query_dim=5, key_dim=5), block_size=4)
    query, keys = torch.randn(2, 3, 5), torch.randn(2, 11, 5)
    memory = attention.prepare(keys)
    reading = attention.read(query, memory)
    assert type(reading._deferred).__name__ == "_Plain"
    torch.testing.assert_close(reading.context, attention.read_plain(query, memory, State()).context)


@pytest.mark.parametrize("attention", [additive(), additive(block_size=2)], ids=["whole", "blocks"])
def test_predicate_masks_and_blocks_compile(attention):
    def read(query, keys, lengths):
        return attention(query, keys, mask=masks.from_lengths(lengths) & masks.window(3)).context

    inputs = (torch.randn(2, 7, 5), torch.randn(2, 7, 5), torch.tensor([7, 4]))
    torch.testing.assert_close(torch.compile(read, backend="aot_eager", fullgraph=True)(*inputs), read(*inputs))


def test_heads_pool_without_a_query():
    layer = MultiHead(attention=Attention(score=QueryFreeScore(key_dim=5, hidden_dim=7)), num_heads=3, query_dim=15)
    reading = layer(None, torch.randn(2, 11, 15))
    assert reading.context.shape == (2, 1, 15)
    assert reading.weights.shape == (2, 3, 1, 11)
    with pytest.raises(ValueError, match="both None"):
        layer(None)


def test_heads_that_share_keys_may_have_masks_of_their_own():
    layer = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=4, num_key_heads=2, query_dim=12)
    mask = torch.rand(2, 4, 1, 7) > 0.5
    weights = layer(torch.randn(2, 3, 12), torch.randn(2, 7, 12), mask=mask).weights
    assert (weights[~mask.expand_as(weights)] == 0).all()


def test_wrong_parts_are_named():
    with pytest.raises(TypeError, match="attention must be an Attention"):
        MultiHead(attention=ScaledDotScore(), num_heads=2, query_dim=4)
    with pytest.raises(TypeError, match="state must be"):
        Attention(score=ScaledDotScore())(torch.randn(2, 3, 5), torch.randn(2, 7, 5), state=torch.zeros(2))
    with pytest.raises(TypeError, match="values must be floating point"):
        Attention(score=ScaledDotScore())(torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.ones(2, 7, 1).long())
    first, second = additive(), Attention(score=ScaledDotScore())
    with pytest.raises(ValueError, match="another attention"):
        second.read(torch.randn(2, 3, 5), first.prepare(torch.randn(2, 7, 5)))


def test_history_begins_where_heads_share_keys():
    score = CoverageScore(query_dim=3, key_dim=3, hidden_dim=7)
    layer = MultiHead(attention=Attention(score=score, selection=Softmax()), num_heads=4, num_key_heads=2, query_dim=12)
    query, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    memory = layer.prepare(keys, mask=masks.from_lengths([7, 3]))
    at_once = layer.read(query, memory)
    first = layer.read(query[:, :2], memory)
    rest = layer.read(query[:, 2:], memory, state=first.state)
    torch.testing.assert_close(torch.cat([first.context, rest.context], 1), at_once.context)


def test_a_memory_of_another_kind_never_reaches_the_kernels():
    attention = Attention(score=AdditiveScore(query_dim=5, key_dim=3, hidden_dim=20011))
    foreign = Attention(score=ScaledDotScore()).prepare(torch.randn(2, 7, 1))
    with pytest.raises(ValueError, match="another attention"):
        attention.read(torch.randn(2, 3, 5), foreign)
    with pytest.raises(TypeError, match="memory must be a Memory"):
        attention.read(torch.randn(2, 3, 5), torch.randn(2, 7, 3))


def test_a_state_of_another_attention_is_refused():
    keys = torch.randn(2, 7, 5)
    walk = Attention(score=ScaledDotScore(), selection=LocalM(half_width=1))(torch.randn(2, 3, 5), keys).state
    covered = Attention(score=CoverageScore(query_dim=5, key_dim=5, hidden_dim=3))
    state = covered(torch.randn(2, 3, 5), keys).state
    for attention, foreign in ((covered, walk), (additive(), state), (additive(), walk)):
        with pytest.raises(ValueError, match="state comes from another attention"):
            attention(torch.randn(2, 3, 5), keys, state=foreign)


def test_beams_reorder_memory_and_state():
    attention = Attention(score=CoverageScore(query_dim=5, key_dim=5, hidden_dim=3))
    query, keys = torch.randn(3, 4, 5), torch.randn(3, 7, 5)
    memory = attention.prepare(keys, mask=masks.from_lengths([7, 2, 5]))
    first = attention.read(query[:, :2], memory)
    rows = torch.tensor([2, 0, 0])
    chosen = attention.read(query[rows, 2:], memory.index(rows), state=first.state.index(rows))
    expected = attention.read(query[:, 2:], memory, state=first.state).context[rows]
    torch.testing.assert_close(chosen.context, expected)


def test_appended_values_are_given_as_they_were_before():
    attention = Attention(score=ScaledDotScore())
    keys, values = torch.randn(2, 3, 5), torch.randn(2, 3, 7)
    with pytest.raises(ValueError, match="pass values with appended keys"):
        attention.prepare(keys, values).append(keys)
    with pytest.raises(ValueError, match="pass values with appended keys"):
        attention.prepare(keys).append(keys, values)
    with pytest.raises(ValueError, match="do not fit the memory"):
        attention.prepare(keys, values).append(keys[:1], values[:1])
    layer = MultiHead(attention=attention, num_heads=3, query_dim=15)
    with pytest.raises(ValueError, match="pass values with appended keys"):
        layer.prepare(torch.randn(2, 3, 15), torch.randn(2, 3, 15)).append(torch.randn(2, 1, 15))


def test_masks_are_not_truth_values():
    with pytest.raises(TypeError, match="combine masks with `&`"):
        _ = masks.causal() and masks.window(3)
    with pytest.raises(TypeError):
        _ = ScaledDotScore() + 3


def test_losses_take_the_masks_that_attention_takes():
    weights = torch.rand(2, 3, 7)
    lengths = masks.from_lengths([7, 4])
    tensor = torch.arange(7) < torch.tensor([[7], [4]])
    torch.testing.assert_close(coverage_loss(weights, key_mask=lengths), coverage_loss(weights, key_mask=tensor))


def test_an_index_is_not_an_outcome():
    selection = Softmax()(torch.randn(2, 3, 7))
    with pytest.raises(ValueError, match="indicator over the 7 keys"):
        selection.log_prob(torch.tensor(2))
