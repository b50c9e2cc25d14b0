"""The likeliest classes in one walk are those of the plain way."""

import math

import pytest
import torch

from saccade.kernels.top_log_probs import top_log_probs, top_log_probs_reference


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("vocab", "count"), [(3, 1), (13, 11), (64, 10), (1009, 10)])
def test_reference(dtype, vocab, count):
    logits = torch.randn(17, vocab, dtype=dtype) * 5
    before = logits.clone()
    without = torch.tensor([0, 1])
    values, ids = top_log_probs(logits, count, without)
    wanted = top_log_probs_reference(logits, count, without)
    torch.testing.assert_close(values, wanted[0])
    torch.testing.assert_close(ids, wanted[1])
    torch.testing.assert_close(logits, before, rtol=0, atol=0)


def test_of_equal_ones_the_first_come_first():
    values, ids = top_log_probs(torch.zeros(2, 29), 5, torch.tensor([2]))
    assert ids.tolist() == [[0, 1, 3, 4, 5]] * 2
    torch.testing.assert_close(values, torch.full((2, 5), -math.log(29)))


def test_impossible_classes_come_last():
    logits = torch.full((1, 11), -math.inf)
    logits[0, [4, 7]] = torch.tensor([1.0, 2.0])
    values, ids = top_log_probs(logits, 3, torch.tensor([0]))
    assert ids[0, :2].tolist() == [7, 4]
    assert values[0, 2] == -math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_a_number_stays_so(bad):
    logits = torch.randn(2, 37)
    logits[1, 5] = bad
    values, _ = top_log_probs(logits, 3, torch.tensor([0]))
    assert values[0].isfinite().all()
    assert values[1].isnan().all()
