"""Metrics of ranked lists against their definitions, and ties against all their orders."""

import itertools
import math
import random

import pytest

from saccade.evaluation.ranking import ndcg, recall, score_rankings


def literal(order, relevant, at):
    gains = [1 / math.log2(rank + 2) for rank, place in enumerate(order[:at]) if relevant[place]]
    best = [1 / math.log2(rank + 2) for rank in range(min(at, sum(relevant)))]
    hits = sum(relevant[place] for place in order[:at])
    return sum(gains) / sum(best), hits / sum(relevant)


@pytest.mark.parametrize("at", [1, 3, 10])
def test_by_definition(at):
    draws = random.Random(at)
    for _ in range(20):
        scores = draws.sample(range(100), 7)
        relevant = [draws.random() < 0.4 for _ in scores]
        relevant[draws.randrange(7)] = True
        order = sorted(range(7), key=lambda place: -scores[place])
        assert (ndcg(scores, relevant, at), recall(scores, relevant, at)) == pytest.approx(literal(order, relevant, at))


def test_ties_count_as_the_mean_over_their_orders():
    scores, relevant = [2.0, 1.0, 1.0, 1.0, 0.0], [False, True, False, True, True]
    orders = [(0, *middle, 4) for middle in itertools.permutations((1, 2, 3))]
    means = [sum(values) / len(orders) for values in zip(*(literal(o, relevant, 2) for o in orders), strict=True)]
    assert [ndcg(scores, relevant, 2), recall(scores, relevant, 2)] == pytest.approx(means)


def test_constant_scores_are_worth_what_chance_is():
    assert recall([0.0] * 101, [True] + [False] * 100) == pytest.approx(10 / 101)


def test_nothing_relevant_gives_zero():
    assert ndcg([1.0, 2.0], [False, False]) == recall([1.0, 2.0], [False, False]) == 0.0


def test_means_over_users_with_their_signature():
    lists = [([2.0, 1.0], [True, False]), ([2.0, 1.0], [False, True])]
    found = score_rankings(lists, ["ndcg@10", "recall@10"], "2 items")
    assert found["recall@10"].value == 100.0
    assert found["ndcg@10"].value == pytest.approx(50 * (1 + 1 / math.log2(3)))
    assert found["ndcg@10"].signature.endswith("against 2 items; mean of 2 users")
    with pytest.raises(ValueError, match="no list"):
        score_rankings([], ["ndcg@10"], "")
