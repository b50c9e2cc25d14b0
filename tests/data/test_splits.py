"""Splits by time, and the last example of each user."""

import numpy as np
import pytest

from saccade.data.corpus import Corpus
from saccade.data.errors import DataError
from saccade.data.splits import last_of_each, latest


def test_all_others_are_strictly_earlier():
    times = [5.0, 1.0, 3.0, 3.0, 2.0, 3.0, 4.0]
    held = latest(times, 3)
    assert held.tolist() == [True, False, True, True, False, True, True]  # all of one moment stay together
    assert max(np.array(times)[~held]) < min(np.array(times)[held])
    assert not latest(times, 0).any()


def test_one_moment_cannot_be_split():
    with pytest.raises(DataError, match=r"All 3 examples would be held out"):
        latest([7.0, 7.0, 7.0], 1)


def test_the_last_of_each_owner_but_no_only_one():
    owners, times = ["a", "b", "a", "c", "b", "a"], [3.0, 9.0, 8.0, 1.0, 2.0, 8.0]
    assert last_of_each(owners, times).tolist() == [False, True, False, False, False, True]


def test_every_example_needs_a_time():
    for split in (lambda: latest([1.0, float("nan")], 1), lambda: last_of_each(["a", "b"], [1.0, float("nan")])):
        with pytest.raises(DataError, match=r"1 of 2 examples have no time.*Name its column"):
            split()


def test_the_corpus_knows_three_splits():
    with pytest.raises(DataError, match=r"^split: unknown 'tme'\. Did you mean 'time'\?"):
        Corpus(split="tme")
    with pytest.raises(DataError, match="folds are drawn at random"):
        Corpus(split="time", folds=5)
