"""Segments: kernel against reference and against softmax, sparsemax and entmax of each segment alone."""

import pytest
import torch

from saccade.kernels import native
from saccade.kernels.finite import NotFiniteError
from saccade.kernels.modes import plainly
from saccade.kernels.segments import MAPPINGS, segment_reference, segment_weights
from saccade.selections import entmax15, segment_entmax15, segment_softmax, segment_sparsemax, softmax, sparsemax

needs_compiler = pytest.mark.skipif(native._load() is None, reason="there is no C compiler")
mappings = pytest.mark.parametrize("mapping", MAPPINGS)
SIZES = [0, 1, 2, 0, 3, 5, 7, 11, 17, 31, 37, 0]
STARTS = torch.tensor([0, *SIZES]).cumsum(0)
ALONE = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15}
TOGETHER = {"softmax": segment_softmax, "sparsemax": segment_sparsemax, "entmax15": segment_entmax15}


@mappings
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 8, 16, 19])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_segment_alone(mapping, heads, dtype):
    scores = (3 * torch.randn(int(STARTS[-1]), heads, dtype=dtype)).requires_grad_()
    towards = torch.randn_like(scores)
    weights = segment_weights(scores, STARTS, mapping)
    (grad,) = torch.autograd.grad(weights, scores, towards)
    parts = [ALONE[mapping](part, dim=0) for part in scores.split(SIZES)]
    torch.testing.assert_close(weights, torch.cat(parts))
    torch.testing.assert_close(grad, torch.autograd.grad(torch.cat(parts), scores, towards)[0])


@mappings
def test_the_reference_gives_the_same(mapping):
    scores = torch.randn(int(STARTS[-1]), 3, dtype=torch.float64, requires_grad=True)
    towards = torch.randn_like(scores)
    with plainly():
        plain = segment_weights(scores, STARTS, mapping)
        expected = torch.autograd.grad(plain, scores, towards)[0]
    weights = segment_weights(scores, STARTS, mapping)
    torch.testing.assert_close(weights, plain)
    torch.testing.assert_close(torch.autograd.grad(weights, scores, towards)[0], expected)
    assert segment_reference(scores[:0], torch.zeros(3, dtype=torch.long), mapping).shape == (0, 3)


@mappings
def test_gradients_of_gradients(mapping):
    starts = torch.tensor([0, 2, 2, 5])
    scores = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: segment_weights(x, starts, mapping), scores)


@needs_compiler
@mappings
def test_extreme_scores(mapping):
    scores = torch.tensor([[1e30], [-1e30], [0.0], [-300.0], [-3e38]])
    weights = segment_weights(scores, torch.tensor([0, 2, 5]), mapping)
    assert weights.flatten().tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]
    for wrong in (torch.nan, torch.inf, -torch.inf):
        for place in (0, 17, 70):
            bad = torch.randn(int(STARTS[-1]), 1)
            bad[place] = wrong
            with pytest.raises(NotFiniteError, match="finite"):
                segment_weights(bad, STARTS, mapping)


@mappings
def test_several_threads(mapping):
    starts = torch.arange(0, 30_011, 10).clamp(max=30_000)
    scores = torch.randn(30_000, 8)
    threads = torch.get_num_threads()
    one = segment_weights(scores, starts, mapping)
    try:
        torch.set_num_threads(3)
        assert torch.equal(segment_weights(scores, starts, mapping), one)
    finally:
        torch.set_num_threads(threads)


def test_functions():
    starts = torch.tensor([0, 3, 3, 5])
    scores = torch.randn(5)
    for mapping, function in TOGETHER.items():
        whole = torch.cat([ALONE[mapping](scores[:3], dim=0), ALONE[mapping](scores[3:], dim=0)])
        torch.testing.assert_close(function(scores, starts), whole)
    half = segment_softmax(scores.bfloat16(), starts)
    assert half.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("scores", "starts", "message"),
    [
        (torch.zeros(2, 2, 2), torch.tensor([0, 2]), "scores must be"),
        (torch.zeros(2, dtype=torch.long), torch.tensor([0, 2]), "scores must be"),
        (torch.zeros(2), torch.tensor([0.0, 2.0]), "starts must be int64"),
        (torch.zeros(2), torch.tensor([0, 3]), "rise from 0 to the number of entries, 2"),
        (torch.zeros(2), torch.tensor([0, 2, 1, 2]), "rise from 0"),
    ],
)
def test_wrong_arguments(scores, starts, message):
    with pytest.raises(ValueError, match=message):
        segment_softmax(scores, starts)
