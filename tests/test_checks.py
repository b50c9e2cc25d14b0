"""Counts that are none are refused where they are given."""

import numpy as np
import pytest

from saccade.aggregations import TopKMean
from saccade.checks import check_count
from saccade.selections import KSubset, LocalM, MoChA, SemiMarkov, TopK


@pytest.mark.parametrize("wrong", [1.5, float("nan"), "3", None, True])
def test_a_count_is_a_whole_number(wrong):
    with pytest.raises(TypeError, match=f"k must be a whole number, 1 or more, got {wrong!r}"):
        check_count("k", wrong)


def test_a_count_has_a_least_value():
    check_count("k", 1)
    check_count("k", np.int64(3))
    check_count("half_width", 0, least=0)
    with pytest.raises(ValueError, match="k must be 1 or more, got 0"):
        check_count("k", 0)


@pytest.mark.parametrize(
    ("make", "name"),
    [(KSubset, "k"), (TopK, "k"), (TopKMean, "k"), (SemiMarkov, "longest"), (MoChA, "width"), (LocalM, "half_width")],
)
def test_selections_refuse_what_is_no_count(make, name):
    with pytest.raises(TypeError, match=f"{name} must be a whole number"):
        make(**{name: 1.5})
