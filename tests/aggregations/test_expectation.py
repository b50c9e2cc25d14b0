import torch

from saccade.aggregations import Expectation, FeatureWise, Sample, UnnormalizedSum, create
from saccade.distributions import Bernoulli, Categorical

from .examples import BATCH, KEYS, QUERIES, VALUE_DIM, assert_empty_rows_are_safe, example


def weighted_sum(weights, values):
    context = torch.zeros(BATCH, QUERIES, VALUE_DIM, dtype=torch.float64)
    for b in range(BATCH):
        for i in range(QUERIES):
            for j in range(KEYS):
                context[b, i] += weights[b, i, j] * values[b, j]
    return context


def test_expectation_and_sum_never_divide():
    for mass_one in (True, False):
        _, weights, values, mask = example(mass_one=mass_one)
        expected = weighted_sum(weights, values)
        torch.testing.assert_close(Expectation()(weights, values, mask=mask), expected)
        torch.testing.assert_close(create("sum")(weights, values, mask=mask), expected)


def test_sum_of_sigmoids_is_the_expectation_over_subsets():
    probs = torch.rand(1, 3, dtype=torch.float64)
    values = torch.randn(3, 2, dtype=torch.float64)
    selection = Bernoulli(probs)
    context = UnnormalizedSum()(UnnormalizedSum().weights(selection), values)
    expected = torch.zeros(1, 2, dtype=torch.float64)
    for z in torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3):
        expected += selection.log_prob(z[None]).exp() * (z[None] @ values)
    torch.testing.assert_close(context, expected)


def test_empty_rows():
    assert_empty_rows_are_safe(Expectation())
    assert_empty_rows_are_safe(UnnormalizedSum())


def test_sample_reads_the_draw_once():
    probs = torch.tensor([[0.1, 0.9], [0.8, 0.2]])
    values = torch.tensor([[2.0], [3.0]])
    still = Categorical(probs)
    assert Sample()(Sample().weights(still), values).tolist() == [[3.0], [2.0]]
    sampling = Categorical(probs, training=True)
    first = Sample().weights(sampling)
    assert first is Sample().weights(sampling)
    picked = Sample()(first, values).squeeze(-1)
    assert set(picked.tolist()) <= {2.0, 3.0}


def test_feature_wise_has_weights_for_each_channel():
    values = torch.randn(BATCH, KEYS, VALUE_DIM, dtype=torch.float64)
    weights = torch.rand(BATCH, VALUE_DIM, QUERIES, KEYS, dtype=torch.float64)
    context = FeatureWise()(weights, values)
    assert context.shape == (BATCH, QUERIES, VALUE_DIM)
    for d in range(VALUE_DIM):
        torch.testing.assert_close(context[..., d], (weights[:, d] @ values[..., d, None]).squeeze(-1))
