"""Figures of tags, by hand and against scikit-learn's definitions written as loops."""

import itertools
import math
import random

import pytest

from saccade.evaluation.tags import entities, entity_f1, score_tags


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("O O", set()),
        ("B-x I-x O B-y", {("x", 0, 2), ("y", 3, 4)}),
        ("B-x B-x I-x", {("x", 0, 1), ("x", 1, 3)}),
        ("I-x I-x O I-y", {("x", 0, 2), ("y", 3, 4)}),  # no B: they begin all the same
        ("B-x I-y I-y", {("x", 0, 1), ("y", 1, 3)}),
        ("B-x-z I-x-z", {("x-z", 0, 2)}),
        ("NOUN VERB", set()),
        ("", set()),
    ],
)
def test_entities_by_hand(tags, wanted):
    assert entities(tags.split()) == wanted


def begins(before: str, tag: str) -> bool:
    return tag[0] == "B" or (tag[0] == "I" and (before[0] == "O" or before[2:] != tag[2:]))


def test_entities_of_all_short_texts_begin_and_end_where_the_convention_says():
    """Every stretch is tried: it is one if it begins, continues in its kind, and does not continue after its end."""
    for tags in itertools.product(["O", "B-x", "I-x", "B-y", "I-y"], repeat=4):
        padded = ["O", *tags, "O"]
        wanted = set()
        for start, end in itertools.combinations(range(5), 2):
            kind = tags[start][2:]
            inside = all(tag == f"I-{kind}" for tag in tags[start + 1 : end])
            if begins(padded[start], tags[start]) and inside and padded[end + 1] != f"I-{kind}":
                wanted.add((kind, start, end))
        assert entities(tags) == wanted, tags


def test_figures_against_loops():
    draws = random.Random(3)
    names = ["O", "B-x", "I-x", "B-y"]
    wanted = [draws.choices(names, k=draws.randint(1, 7)) for _ in range(11)]
    found = [[tag if draws.random() < 0.6 else draws.choice(names) for tag in tags] for tags in wanted]
    figures = score_tags(found, wanted, ["accuracy", "macro_f1", "entity_f1"])
    pairs = [pair for a, b in zip(found, wanted, strict=True) for pair in zip(a, b, strict=True)]
    assert figures["accuracy"].value == pytest.approx(100 * sum(a == b for a, b in pairs) / len(pairs))
    each = []
    for name in names:
        hits = sum(a == b == name for a, b in pairs)
        each.append(2 * hits / (sum(a == name for a, _ in pairs) + sum(b == name for _, b in pairs)))
    assert figures["macro_f1"].value == pytest.approx(100 * sum(each) / len(each))
    said = {(n, *e) for n, tags in enumerate(found) for e in entities(tags)}
    true = {(n, *e) for n, tags in enumerate(wanted) for e in entities(tags)}
    precision, recall = len(said & true) / len(said), len(said & true) / len(true)
    assert figures["entity_f1"].value == pytest.approx(100 * 2 * precision * recall / (precision + recall))


def test_words_without_a_tag_are_wrong():
    found = score_tags([["x"]], [["x", "y", "x"]], ["accuracy", "macro_f1"])
    assert found["accuracy"].value == pytest.approx(100 / 3)
    assert found["macro_f1"].value == pytest.approx(100 * (2 / 3 + 0) / 2)


def test_without_entities_their_figure_is_undefined():
    assert math.isnan(entity_f1([["NOUN"]], [["VERB"]]))
    with pytest.raises(ValueError, match="cannot be compared"):
        score_tags([["x"]], [["x"], ["y"]], ["accuracy"])
