"""What holds for every score."""

import pytest
import torch
from torch.utils import _pytree as pytree

from saccade.scores import Score, scores

from .members import SCORES, SIZES, SMALL, Assembly, Sizes, build, covered, inputs

NAMES = covered(scores, SCORES)
STATEFUL = [name for name in NAMES if build(SCORES[name]).stateful]
STATELESS = [name for name in NAMES if name not in STATEFUL]
PAIRWISE = [name for name in NAMES if build(SCORES[name]).pairwise]

every_score = pytest.mark.parametrize("name", NAMES)


def sizes_of(name, sizes=SIZES):
    return SCORES[name].sizes(sizes)


def expected_shape(score: Score, sizes: Sizes) -> tuple[int, ...]:
    channels = (sizes.value_dim,) if score.feature_wise else ()
    return (*sizes.batch, *channels, sizes.queries, sizes.keys)


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@every_score
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=len)
def test_shape_with_any_number_of_batch_dimensions(name, batch):
    sizes = sizes_of(name, Sizes(batch=batch))
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    made = score(x.query, x.keys)
    assert made.shape == expected_shape(score, sizes)
    assert made.dtype == x.query.dtype
    flat = score(x.query.reshape(-1, *x.query.shape[-2:]), x.keys.reshape(-1, *x.keys.shape[-2:]))
    close(made.reshape(flat.shape), flat)


@every_score
@pytest.mark.parametrize(("queries", "keys"), [(0, 13), (1, 13), (3, 0), (3, 1), (1, 1), (0, 0)])
def test_lengths_of_zero_and_one(name, queries, keys):
    sizes = sizes_of(name, Sizes(queries=queries, keys=keys))
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    made = score(x.query, x.keys)
    assert made.shape == expected_shape(score, sizes)
    assert made.isfinite().all()


@every_score
def test_prepared_and_compared_is_forward(name):
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    prepared = score.prepare(x.keys)
    close(score.compare(x.query, prepared, score.begin(x.query, prepared)), score(x.query, x.keys))


@every_score
def test_prepared_tensors_have_keys_on_the_last_axis_but_one(name):
    sizes = sizes_of(name)
    prepared = build(SCORES[name], sizes).prepare(inputs(sizes).keys)
    for leaf in pytree.tree_leaves(prepared):
        assert isinstance(leaf, torch.Tensor)
        assert leaf.shape[-2] == sizes.keys
        assert leaf.shape[: len(sizes.batch)] == sizes.batch


@pytest.mark.parametrize("name", STATELESS)
def test_queries_at_once_are_one_at_a_time(name):
    if SCORES[name].by_position:
        pytest.skip("scores depend on the place of the query among the queries")
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    prepared = score.prepare(x.keys)
    alone = [score.compare(x.query[..., i : i + 1, :], prepared) for i in range(sizes.queries)]
    close(score.compare(x.query, prepared), torch.cat(alone, dim=-2))


@pytest.mark.parametrize("name", STATEFUL)
def test_state_changes_the_next_scores_and_stays_as_it_was(name):
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    prepared = score.prepare(x.keys)
    one = x.query[..., :1, :]
    first = score.begin(one, prepared)
    before = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, first)
    weights = torch.softmax(score.compare(one, prepared, first), -1)
    second = score.advance(first, weights, one, prepared)
    for was, now in zip(pytree.tree_leaves(before), pytree.tree_leaves(first), strict=True):
        assert torch.equal(was, now) if isinstance(was, torch.Tensor) else was == now
    again = score.compare(one, prepared, first)
    close(torch.softmax(again, -1), weights)
    assert not torch.allclose(score.compare(one, prepared, second), again)


@pytest.mark.parametrize("name", PAIRWISE)
def test_permuted_keys_give_permuted_scores(name):
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    order = torch.randperm(sizes.keys, generator=torch.Generator().manual_seed(0))
    close(score(x.query, x.keys[..., order, :]), score(x.query, x.keys)[..., order])


@pytest.mark.parametrize("name", PAIRWISE)
def test_each_query_may_have_its_own_keys(name):
    if name in STATEFUL:
        pytest.skip("a stateful score compares one query at a time")
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    windows = x.keys.unsqueeze(-3).expand(*sizes.rows, sizes.keys, sizes.key_dim)
    own = score(x.query.unsqueeze(-2), windows)
    shared = score(x.query, x.keys)
    if score.feature_wise:
        shared = shared.movedim(-3, -2)
    close(own.squeeze(-2), shared)


@pytest.mark.parametrize("name", PAIRWISE)
def test_keys_may_be_scored_in_parts(name):
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    parts = [score(x.query, x.keys[..., :5, :]), score(x.query, x.keys[..., 5:, :])]
    close(torch.cat(parts, dim=-1), score(x.query, x.keys))


@every_score
def test_appended_keys_are_prepared_by_themselves(name):
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    if not score.appendable:
        attention = Assembly("score", name).attention(sizes)
        memory = attention.prepare(x.keys[..., :5, :], x.values[..., :5, :])
        with pytest.raises(ValueError, match="prepare all keys in one call"):
            memory.append(x.keys[..., 5:, :], x.values[..., 5:, :])
        return
    parts = (score.prepare(x.keys[..., :5, :]), score.prepare(x.keys[..., 5:, :], start=5))
    joined = pytree.tree_map(lambda a, b: torch.cat([a, b], dim=-2), *parts)
    whole = score.prepare(x.keys)
    pytree.tree_map(close, joined, whole)


@every_score
def test_dot_product_form_is_the_same_score(name):
    sizes = sizes_of(name)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    prepared = score.prepare(x.keys)
    dot = score.as_dot_product(x.query, prepared)
    if dot is None:
        assert not isinstance(score, scores.get("dot"))
        return
    close(dot.scores(), score.compare(x.query, prepared))
    assert dot.query.shape[:-1] == sizes.rows
    assert dot.keys.shape[:-1] == (*sizes.batch, sizes.keys)


@every_score
def test_gradcheck(name):
    sizes = sizes_of(name, SMALL)
    score = build(SCORES[name], sizes)
    x = inputs(sizes)
    parameters = tuple(score.parameters())

    def run(query, keys, *_):
        prepared = score.prepare(keys)
        state = score.begin(query, prepared)
        if not score.stateful:
            return score.compare(query, prepared, state)
        made = []
        for i in range(2):
            one = query[..., i : i + 1, :]
            made.append(score.compare(one, prepared, state))
            state = score.advance(state, torch.softmax(made[-1], -1), one, prepared)
        return torch.cat(made, dim=-2)

    assert torch.autograd.gradcheck(run, (x.query.requires_grad_(), x.keys.requires_grad_(), *parameters))


@every_score
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_low_precision_is_finite_and_near(name, dtype, scale):
    sizes = sizes_of(name)
    x = inputs(sizes)
    score = build(SCORES[name], sizes, dtype=dtype)
    query, keys = (scale * x.query).to(dtype).requires_grad_(), x.keys.to(dtype).requires_grad_()
    made = score(query, keys)
    assert made.dtype == dtype
    assert made.isfinite().all()
    if made.requires_grad:
        wanted = [query, keys, *score.parameters()]
        for gradient in torch.autograd.grad(made.sum(), wanted, allow_unused=True):
            assert gradient is None or gradient.isfinite().all()
    if scale == 1.0:
        exact = build(SCORES[name], sizes)(x.query, x.keys)
        size = exact.abs().max().clamp(min=1)
        assert ((made.double() - exact).abs() <= size * 32 * torch.finfo(dtype).eps).all()


@every_score
def test_wrong_sizes_are_refused_by_name(name):
    sizes = sizes_of(name)
    attention = Assembly("score", name).attention(sizes)
    x = inputs(sizes)
    if not attention.score.query_free and not SCORES[name].any_query:
        wrong = x.query.new_zeros(*x.query.shape[:-1], sizes.query_dim + 2)
        with pytest.raises(ValueError, match="query"):
            attention(wrong, x.keys, x.values)
    if not SCORES[name].any_key:
        wrong = x.keys.new_zeros(*x.keys.shape[:-1], sizes.key_dim + 2)
        with pytest.raises(ValueError, match="keys"):
            attention(x.query, wrong, x.values)
