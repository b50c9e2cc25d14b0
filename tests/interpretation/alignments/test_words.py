"""Attention between words."""

import pytest
import torch

from saccade.interpretation import merge_words

SOURCE = [[0, 1], [2], [4]]  # 3 is a space, 5 and 6 are special
TARGET = [[0], [1, 2, 3]]


def literal(weights: torch.Tensor) -> torch.Tensor:
    rows = [[sum(weights[p, q].item() for p in t for q in s) / len(t) for s in SOURCE] for t in TARGET]
    return torch.tensor(rows, dtype=weights.dtype)


def test_sums_over_source_pieces_and_means_over_target_pieces() -> None:
    weights = torch.rand(5, 7, dtype=torch.float64).softmax(dim=-1)
    merged = merge_words(weights, SOURCE, TARGET)
    assert torch.allclose(merged, literal(weights))
    assert (merged.sum(-1) < 1).all()
    several = merge_words(weights.expand(2, 3, 5, 7), SOURCE, TARGET)
    torch.testing.assert_close(several[1, 2], merged, rtol=1e-14, atol=0)  # another order of summation
    shown = merge_words(weights, [*SOURCE, [3], [5], [6]], TARGET)
    assert torch.allclose(shown.sum(-1), torch.ones(2, dtype=torch.float64))


def test_the_sink_is_redistributed_in_proportion() -> None:
    weights = torch.rand(5, 7, dtype=torch.float64).softmax(dim=-1)
    dropped, spread = (merge_words(weights, SOURCE, TARGET, sink=sink) for sink in ("drop", "redistribute"))
    assert torch.allclose(spread.sum(-1), torch.ones(2, dtype=torch.float64))
    assert torch.allclose(spread, dropped / dropped.sum(-1, keepdim=True))


def test_a_row_that_loses_all_mass_is_zero() -> None:
    weights = torch.zeros(5, 7)
    weights[0, 6] = 1.0  # the end of the sentence alone
    for sink in ("drop", "redistribute"):
        assert (merge_words(weights, SOURCE, TARGET, sink=sink) == 0).all()
    weights[2, 2] = 0.5  # not renormalised, as those of a local attention
    assert torch.allclose(merge_words(weights, SOURCE, TARGET, sink="redistribute")[1], torch.tensor([0, 0.5 / 3, 0]))


def test_empty_texts() -> None:
    assert merge_words(torch.ones(1, 7), SOURCE, []).shape == (0, 3)
    assert merge_words(torch.ones(4, 1), [], TARGET, sink="redistribute").shape == (2, 0)
    assert (merge_words(torch.ones(4, 7), [[]], TARGET) == 0).all()


def test_wrong_words_are_named() -> None:
    with pytest.raises(ValueError, match=r"source word 1 has a piece 7, but weights \(5, 7\) have 7 source pieces"):
        merge_words(torch.ones(5, 7), [[0], [7]], TARGET)
    with pytest.raises(ValueError, match=r"target word 1 has a piece 3.*have 3 target pieces"):
        merge_words(torch.ones(3, 7), SOURCE, TARGET)
    with pytest.raises(ValueError, match="Did you mean 'drop'"):
        merge_words(torch.ones(5, 7), SOURCE, TARGET, sink="dropp")
    with pytest.raises(ValueError, match="target pieces, source pieces"):
        merge_words(torch.ones(5), SOURCE, TARGET)
