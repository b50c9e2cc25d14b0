"""What holds for every aggregation."""

from dataclasses import replace

import pytest
import torch

from saccade.aggregations import aggregations

from .members import AGGREGATIONS, SCORES, SIZES, SMALL, Assembly, Sizes, covered

NAMES = covered(aggregations, AGGREGATIONS)
DTYPES = [torch.float32, torch.float64, torch.bfloat16]

every_aggregation = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


def assembled(name, sizes=SIZES, dtype=torch.float64):
    assembly = Assembly("aggregation", name)
    sizes = assembly.sizes(sizes)
    return assembly.attention(sizes, dtype=dtype), assembly.inputs(sizes, dtype=dtype)


@every_aggregation
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=len)
def test_context_has_the_declared_size(name, batch):
    sizes = Sizes(batch=batch)
    attention, x = assembled(name, sizes)
    context = attention(x.query, x.keys, x.values, mask=x.mask).context
    contexts = Assembly("aggregation", name).contexts(sizes.queries)
    assert context.shape == (*batch, contexts, attention.aggregation.output_dim(x.values.shape[-1]))
    assert context.dtype == x.query.dtype


@every_aggregation
@every_dtype
def test_empty_rows_give_zeros_and_finite_gradients(name, dtype):
    attention, x = assembled(name, dtype=dtype)
    mask = x.mask.clone()
    mask[0] = False
    values = x.values.clone().requires_grad_(x.values.is_floating_point())
    query, keys = x.query.clone().requires_grad_(), x.keys.clone().requires_grad_()
    context = attention(query, keys, values, mask=mask).context
    assert (context[0] == 0).all()
    assert context.isfinite().all()
    wanted = [t for t in (query, keys, values, *attention.parameters()) if t.requires_grad]
    for gradient in torch.autograd.grad(context.square().sum(), wanted, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()


@every_aggregation
def test_masked_values_do_not_matter(name):
    attention, x = assembled(name)
    clean = attention(x.query, x.keys, x.values, mask=x.mask).context
    column = x.mask.transpose(-1, -2)
    garbage = torch.where(column, x.values, 1e6 if x.values.is_floating_point() else 10**6)
    torch.testing.assert_close(attention(x.query, x.keys, garbage, mask=x.mask).context, clean)


@every_aggregation
def test_masked_is_removed(name):
    attention, x = assembled(name)
    kept = torch.arange(SIZES.keys) < 7
    masked = attention(x.query, x.keys, x.values, mask=kept).context
    removed = attention(x.query, x.keys[:, kept], x.values[:, kept]).context
    torch.testing.assert_close(masked, removed)


@every_aggregation
@pytest.mark.parametrize(("queries", "keys"), [(0, 13), (1, 13), (3, 0), (3, 1), (0, 0)])
def test_lengths_of_zero_and_one(name, queries, keys):
    attention, x = assembled(name, Sizes(queries=queries, keys=keys))
    context = attention(x.query, x.keys, x.values).context
    contexts = Assembly("aggregation", name).contexts(queries)
    assert context.shape == (2, contexts, attention.aggregation.output_dim(x.values.shape[-1]))
    assert context.isfinite().all()
    if keys == 0:
        assert (context == 0).all()


@every_aggregation
def test_gradcheck(name):
    if not AGGREGATIONS[name].differentiable:
        pytest.skip("what it reads is not a smooth function of the weights")
    attention, x = assembled(name, replace(SMALL, batch=(2,)))
    mask = torch.arange(5) < torch.tensor([3, 0])[:, None, None]
    parameters = tuple(attention.parameters())

    def run(query, keys, values, *_):
        return attention(query, keys, values, mask=mask).context

    inputs = [x.query.requires_grad_(), x.keys.requires_grad_(), x.values]
    inputs[2].requires_grad_(x.values.is_floating_point())
    assert torch.autograd.gradcheck(run, (*inputs, *parameters))


@every_aggregation
def test_score_of_the_other_kind_is_refused(name):
    other = "additive" if AGGREGATIONS[name].score == "feature_wise" else "feature_wise"
    with pytest.raises(ValueError, match="feature-wise"):
        type(assembled(name)[0])(score=SCORES[other].build(SIZES), aggregation=AGGREGATIONS[name].build(SIZES))
