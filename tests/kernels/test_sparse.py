"""Sparsemax and entmax-1.5: kernel against sort, for every length that vectors may cut in two."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.kernels import native, sparse
from saccade.kernels.finite import NotFiniteError
from saccade.kernels.sparse import MAPPINGS, normalise

mappings = pytest.mark.parametrize("mapping", MAPPINGS)
needs_compiler = pytest.mark.skipif(native._load() is None, reason="there is no C compiler")


def gradient(function, scores, towards):
    scores = scores.detach().requires_grad_()
    return torch.autograd.grad((function(scores) * towards).sum(), scores)[0]


@needs_compiler
@mappings
@pytest.mark.parametrize("size", [*range(1, 20), 31, 67, 257, 1031])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_kernel_and_reference(mapping, size, scale):
    scores = torch.randn(13, size, dtype=torch.float64) * scale
    mask = torch.rand(13, size) > 0.3
    mask[5] = False
    scores[~mask] = torch.nan
    reference = MAPPINGS[mapping].reference
    weights = normalise(scores, mask, mapping)
    torch.testing.assert_close(weights, reference(scores, mask), rtol=1e-9, atol=1e-11)
    assert weights[~mask].eq(0).all()
    unmasked = torch.randn(13, size, dtype=torch.float64) * scale
    torch.testing.assert_close(normalise(unmasked, None, mapping), reference(unmasked, None), rtol=1e-9, atol=1e-11)
    towards = torch.randn(13, size, dtype=torch.float64)
    for keep, given_scores in ((mask, scores), (None, unmasked)):
        ours = gradient(lambda x, keep=keep: normalise(x, keep, mapping), given_scores, towards)
        plain = MAPPINGS[mapping].gradient(normalise(given_scores, keep, mapping), towards)
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)


@mappings
@pytest.mark.parametrize("masked", [False, True])
def test_the_sort_differentiates_to_the_same_gradient(mapping, masked):
    """Exported graphs leave the gradient to autograd."""
    scores = torch.randn(7, 11, dtype=torch.float64) * 2
    mask = torch.rand(7, 11) > 0.4 if masked else None
    towards = torch.randn(7, 11, dtype=torch.float64)
    by_autograd = gradient(lambda x: MAPPINGS[mapping].reference(x, mask), scores, towards)
    torch.testing.assert_close(by_autograd, gradient(lambda x: normalise(x, mask, mapping), scores, towards))


@mappings
@pytest.mark.parametrize("spread", [1e-4, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("size", [2, 131, 32003])
def test_float32_is_exact(mapping, size, spread):
    scores = torch.randn(3, size) * spread
    right = MAPPINGS[mapping].reference(scores.double(), None)
    weights = normalise(scores, None, mapping)
    torch.testing.assert_close(weights.double(), right, rtol=1e-4, atol=3e-7)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3), rtol=0, atol=3e-6)


@mappings
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("value", [0.0, 1e4, -1e4, 1e30])
def test_equal_scores_share_equally(mapping, dtype, value):
    weights = normalise(torch.full((2, 16), value, dtype=dtype), None, mapping)
    torch.testing.assert_close(weights, torch.full((2, 16), 1 / 16, dtype=dtype))


@mappings
def test_many_equal_scores(mapping):
    weights = normalise(torch.zeros(1, 100_003), None, mapping)
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0), rtol=0, atol=1e-5)
    assert weights.unique().numel() == 1


@mappings
@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40))
def test_any_finite_scores_give_a_distribution_in_the_order_of_the_scores(mapping, scores):
    scores = torch.tensor([scores])
    weights = normalise(scores, None, mapping)
    assert (weights >= 0).all()
    assert abs(weights.sum().item() - 1) < 1e-5
    order = scores.argsort(-1)
    assert (weights.gather(-1, order).diff(dim=-1) >= -1e-6).all()


@needs_compiler
@mappings
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("place", [0, 9, 12])
def test_the_kernel_reports_scores_that_are_not_finite(mapping, wrong, place):
    scores = torch.randn(5, 13)
    scores[3, place] = wrong
    with pytest.raises(NotFiniteError, match="finite"):
        normalise(scores, None, mapping)
    mask = torch.ones(5, 13, dtype=torch.bool)
    mask[3, place] = False
    assert normalise(scores, mask, mapping).isfinite().all()


@mappings
def test_fallback(mapping, monkeypatch):
    scores = torch.randn(3, 17, dtype=torch.float64)
    mask, towards = torch.rand(3, 17) > 0.4, torch.randn(3, 17, dtype=torch.float64)
    expected = normalise(scores, mask, mapping)
    expected_gradient = gradient(lambda x: normalise(x, mask, mapping), scores, towards)
    monkeypatch.setenv("SACCADE_NATIVE", "0")
    torch.testing.assert_close(normalise(scores, mask, mapping), expected)
    torch.testing.assert_close(gradient(lambda x: normalise(x, mask, mapping), scores, towards), expected_gradient)


@mappings
def test_compiled_code_calls_the_same_kernel(mapping):
    scores, mask = torch.randn(3, 17, dtype=torch.float64), torch.rand(3, 17) > 0.4
    towards = torch.randn(3, 17, dtype=torch.float64)
    compiled = torch.compile(lambda x: normalise(x, mask, mapping), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(scores), normalise(scores, mask, mapping))
    eager = gradient(lambda x: normalise(x, mask, mapping), scores, towards)
    torch.testing.assert_close(gradient(compiled, scores, towards), eager)


def test_operators_are_well_formed():
    scores = torch.randn(3, 17, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(sparse.compiled_normalise, (scores, torch.rand(3, 17) > 0.4, "sparsemax"))
    weights = normalise(scores.detach(), None, "entmax15")
    torch.library.opcheck(sparse.compiled_backward, (weights, torch.randn_like(weights), "entmax15"))
