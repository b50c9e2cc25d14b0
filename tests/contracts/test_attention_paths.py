"""Every member inside Attention and MultiHead: all the ways of computing a reading give the same."""

from dataclasses import replace

import pytest
import torch

from saccade import Attention, State, masks
from saccade.attention import Attention as AttentionModule

from .members import ASSEMBLIES, SIZES, SMALL, Assembly, Sizes, multihead

DTYPES = [torch.float32, torch.float64, torch.bfloat16]
IN_HEADS = [assembly for assembly in ASSEMBLIES if assembly.works_in_heads]

every_member = pytest.mark.parametrize("assembly", ASSEMBLIES, ids=str)
every_member_in_heads = pytest.mark.parametrize("assembly", IN_HEADS, ids=str)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


def setup(assembly: Assembly, sizes: Sizes = SIZES, dtype=torch.float64, heads=False):
    if heads:
        return multihead(assembly, sizes, dtype=dtype), assembly.inputs(sizes, dtype=dtype)
    sizes = assembly.sizes(sizes)
    return assembly.attention(sizes, dtype=dtype), assembly.inputs(sizes, dtype=dtype)


def is_stochastic(module) -> bool:
    attention = module if isinstance(module, Attention) else module.attention
    return attention.selection.stochastic or type(attention.aggregation).__name__ == "Sample"


def same(ours, theirs, **tolerance):
    torch.testing.assert_close(ours.context, theirs.context, **tolerance)
    torch.testing.assert_close(ours.weights, theirs.weights, **tolerance)


def check_train_eval_no_grad(module, x):
    evaluated = module.eval()(x.query, x.keys, x.values, mask=x.mask)
    with torch.no_grad():
        same(module(x.query, x.keys, x.values, mask=x.mask), evaluated)
    with torch.inference_mode():
        same(module(x.query, x.keys, x.values, mask=x.mask), evaluated)
    if not is_stochastic(module):
        same(module.train()(x.query, x.keys, x.values, mask=x.mask), evaluated)


@every_member
def test_train_is_eval_is_no_grad(assembly):
    check_train_eval_no_grad(*setup(assembly))


@every_member_in_heads
def test_train_is_eval_is_no_grad_in_heads(assembly):
    check_train_eval_no_grad(*setup(assembly, heads=True))


def check_prepared_and_read(module, x):
    whole = module(x.query, x.keys, x.values, mask=x.mask)
    memory = module.prepare(x.keys, x.values, mask=x.mask)
    assert len(memory) == x.keys.shape[-2]
    same(module.read(x.query, memory), whole, rtol=0, atol=0)
    same(module.read(x.query, memory), whole, rtol=0, atol=0)  # reading changes neither memory nor module


@every_member
def test_prepared_and_read_is_forward(assembly):
    check_prepared_and_read(*setup(assembly))


@every_member_in_heads
def test_prepared_and_read_is_forward_in_heads(assembly):
    check_prepared_and_read(*setup(assembly, heads=True))


def check_steps(assembly, module, x):
    if getattr(assembly.member, "by_position", False):
        pytest.skip("a query's place among the queries matters: see the test of growing memories")
    if getattr(assembly.member, "one_context", False):
        pytest.skip("all queries together read one context")
    memory = module.prepare(x.keys, x.values, mask=x.mask)
    whole = module.read(x.query, memory)
    state = None
    contexts, weights = [], []
    for i in range(x.query.shape[-2]):
        reading = module.read(x.query[..., i : i + 1, :], memory, state=state)
        state = reading.state
        assert isinstance(state, State)
        contexts.append(reading.context)
        weights.append(reading.weights)
    torch.testing.assert_close(torch.cat(contexts, dim=-2), whole.context)
    torch.testing.assert_close(torch.cat(weights, dim=-2), whole.weights)
    same_state(state, whole.state)


def same_state(ours, theirs):
    ours, spec = torch.utils._pytree.tree_flatten(ours)
    theirs, other = torch.utils._pytree.tree_flatten(theirs)
    assert spec == other
    for one, two in zip(ours, theirs, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, two)
        else:
            assert one == two


@every_member
def test_one_step_at_a_time_is_all_at_once(assembly):
    check_steps(assembly, *setup(assembly))


@every_member_in_heads
def test_one_step_at_a_time_is_all_at_once_in_heads(assembly):
    check_steps(assembly, *setup(assembly, heads=True))


def check_padding(assembly, heads):
    # A score of positions has the last query at the last key, so it is asked as self-attention asks.
    by_position = getattr(assembly.member, "by_position", False)
    module, x = setup(assembly, Sizes(queries=SIZES.keys) if by_position else SIZES, heads=heads)
    clean = module(x.query, x.keys, x.values, mask=x.mask)
    column = x.mask.transpose(-1, -2)
    garbage = module(
        x.query,
        torch.where(column, x.keys, 77.0),
        torch.where(column, x.values, 1e5) if x.values.is_floating_point() else x.values,
        mask=x.mask,
    )
    same(garbage, clean)
    for row in range(x.query.shape[0]):
        length = int(x.mask[row].sum())
        queries = length if by_position else SIZES.queries
        alone = module(x.query[row, :queries], x.keys[row, :length], x.values[row, :length])
        contexts = assembly.contexts(queries)
        torch.testing.assert_close(clean.context[row, :contexts], alone.context)
        torch.testing.assert_close(clean.weights[row][..., :queries, :length], alone.weights)
        assert (clean.weights[row][..., length:] == 0).all()


@every_member
def test_padding_changes_nothing(assembly):
    check_padding(assembly, heads=False)


@every_member_in_heads
def test_padding_changes_nothing_in_heads(assembly):
    check_padding(assembly, heads=True)


@every_member
@every_dtype
def test_fully_masked_rows(assembly, dtype):
    attention, x = setup(assembly, dtype=dtype)
    mask = x.mask.clone()
    mask[0] = False
    given = [x.query.requires_grad_(), x.keys.requires_grad_(), x.values]
    given[2].requires_grad_(x.values.is_floating_point())
    for training in (False, True):
        reading = attention.train(training)(*given, mask=mask)
        assert reading.context.dtype == dtype
        assert (reading.weights[0] == 0).all()
        assert (reading.context[0] == 0).all()
        assert reading.context.isfinite().all()
        wanted = [t for t in (*given, *attention.parameters()) if t.requires_grad]
        gradients = torch.autograd.grad(
            reading.context.sum() + reading.weights.square().sum(), wanted, allow_unused=True
        )
        for gradient in gradients:
            assert gradient is None or gradient.isfinite().all()


@every_member_in_heads
@every_dtype
def test_fully_masked_rows_in_heads(assembly, dtype):
    module, x = setup(assembly, dtype=dtype, heads=True)
    reading = module(x.query, x.keys, x.values, mask=torch.zeros(2, 1, SIZES.keys, dtype=torch.bool))
    assert (reading.weights == 0).all()
    torch.testing.assert_close(reading.context, module.output_proj.bias.expand_as(reading.context))
    for gradient in torch.autograd.grad(reading.context.sum(), list(module.parameters()), allow_unused=True):
        assert gradient is None or gradient.isfinite().all()


@every_member
@every_dtype
def test_extreme_queries_are_finite(assembly, dtype):
    attention, x = setup(assembly, dtype=dtype)
    given = [(1e4 * x.query).requires_grad_(), x.keys.requires_grad_(), x.values]
    reading = attention(*given, mask=x.mask)
    assert reading.context.isfinite().all()
    assert reading.weights.isfinite().all()
    assert (reading.weights >= 0).all()
    loss = reading.context.square().sum() + reading.weights.square().sum()
    if loss.requires_grad:
        for gradient in torch.autograd.grad(loss, [*given[:2], *attention.parameters()], allow_unused=True):
            assert gradient is None or gradient.isfinite().all()


@every_member
@pytest.mark.parametrize(("queries", "keys"), [(0, 13), (1, 13), (3, 0), (3, 1), (0, 0)])
def test_lengths_of_zero_and_one(assembly, queries, keys):
    attention, x = setup(assembly, Sizes(queries=queries, keys=keys))
    reading = attention(x.query, x.keys, x.values)
    features = attention.aggregation.output_dim(x.values.shape[-1])
    assert reading.context.shape == (2, assembly.contexts(queries), features)
    assert reading.weights.shape[-2:] == (queries, keys)
    assert reading.context.isfinite().all()
    if keys == 0:
        assert (reading.context == 0).all()


@every_member_in_heads
@pytest.mark.parametrize(("queries", "keys"), [(0, 13), (3, 0), (3, 1)])
def test_lengths_of_zero_and_one_in_heads(assembly, queries, keys):
    module, x = setup(assembly, Sizes(queries=queries, keys=keys), heads=True)
    reading = module(x.query, x.keys, x.values)
    assert reading.context.shape == (2, assembly.contexts(queries), 29)
    assert reading.weights.shape[-2:] == (queries, keys)
    assert reading.context.isfinite().all()


@every_member
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=len)
def test_any_number_of_batch_dimensions(assembly, batch):
    attention, x = setup(assembly, Sizes(batch=batch))
    reading = attention(x.query, x.keys, x.values, mask=x.mask)
    flat = attention(
        x.query.reshape(-1, *x.query.shape[-2:]),
        x.keys.reshape(-1, *x.keys.shape[-2:]),
        x.values.reshape(-1, *x.values.shape[-2:]),
        mask=x.mask.reshape(-1, *x.mask.shape[-2:]),
    )
    torch.testing.assert_close(reading.context.reshape(flat.context.shape), flat.context)
    torch.testing.assert_close(reading.weights.reshape(flat.weights.shape), flat.weights)


@every_member
def test_gradcheck(assembly):
    if not assembly.differentiable:
        pytest.skip("its gradient is an estimator's")
    attention, x = setup(assembly, replace(SMALL, batch=(2,)))
    mask = torch.arange(5) < torch.tensor([3, 5])[:, None, None]

    def run(query, keys, values):
        reading = attention(query, keys, values, mask=mask)
        return reading.context, reading.weights

    given = [x.query.requires_grad_(), x.keys.requires_grad_(), x.values]
    given[2].requires_grad_(x.values.is_floating_point())
    assert torch.autograd.gradcheck(run, given)


@every_member_in_heads
def test_growing_memory_is_causal_attention(assembly):
    """One query at a time against a memory that grows by its key, as a decoder reads itself."""
    module, _ = setup(assembly, SIZES, heads=True)
    attention = module.attention
    if attention.score.stateful:
        pytest.skip("the state remembers each key, and the keys change")
    if assembly.contexts(2) == 1:
        pytest.skip("all queries together read one context")
    if not attention.score.appendable:
        pytest.skip("keys cannot be appended")
    module = multihead(assembly, replace(SIZES, query_dim=7, key_dim=7, value_dim=7))
    x = torch.randn(2, 5, 7, dtype=torch.float64)
    whole = module(x, mask=masks.causal())
    memory, state = module.prepare(x[:, :1]), None
    for i in range(5):
        if i:
            memory = memory.append(x[:, i : i + 1])
        step = module.read(x[:, i : i + 1], memory, state=state)
        state = step.state
        torch.testing.assert_close(step.context, whole.context[:, i : i + 1])
        torch.testing.assert_close(step.weights, whole.weights[..., i : i + 1, : i + 1])


@every_member
def test_fast_paths_read_what_the_definition_reads(assembly):
    attention, x = setup(assembly)
    if attention.score.stateful:
        pytest.skip("a stateful score has one way only")
    memory = attention.prepare(x.keys, x.values, mask=x.mask)
    same(attention.read(x.query, memory), AttentionModule.read_plain(attention, x.query, memory, State()))


@every_member
def test_looking_at_the_weights_does_not_change_the_context(assembly):
    attention, x = setup(assembly)
    unseen = attention(x.query, x.keys, x.values, mask=x.mask)
    context = unseen.context.clone()
    assert unseen.weights.shape[-2:] == (SIZES.queries, SIZES.keys)
    torch.testing.assert_close(unseen.context, context, rtol=0, atol=0)
    torch.testing.assert_close(attention(x.query, x.keys, x.values, mask=x.mask).context, context, rtol=0, atol=0)
