import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from saccade.data.corpus import Corpus, choose_held_out, mark
from saccade.data.folds import choose_folds
from saccade.data.groups import Strata
from saccade.data.marks import digest

DIFFERENT = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        255,
        256,
        -256,
        2**64,
        10**5000,
        0.5,
        float("inf"),
        float("nan"),
        "",
        "1",
        "a",
        "\ud800",
    ),
    *(b"", b"a", [], ["a"], ["", "a"], ["a", ""], [["a"]], [[], "a"], {}, {"a": 1}, {"a": [1]}, {"1": 1}, {1: 1}),
    *(np.zeros(3), np.zeros(4), np.zeros((3, 1)), np.zeros((1, 3)), np.zeros(3, dtype=int), np.zeros(3, dtype=bool)),
]


def test_different_values_have_different_digests():
    assert len({digest(value) for value in DIFFERENT}) == len(DIFFERENT)
    long = np.zeros((200, 300))
    other = long.copy()
    other[100, 150] = 1e-12
    assert digest(long) != digest(other)
    assert digest([0] * 5000 + [1]) != digest([0] * 5001)


def test_equal_values_have_equal_digests():
    for one, other in [
        ((1, [2]), [1, [2]]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (float("nan"), -float("nan")),
        (0.0, -0.0),
        (np.float64(0.5), 0.5),
        (np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(6, dtype=np.int64).reshape(2, 3)),
        (np.arange(6.0).reshape(2, 3).T, np.ascontiguousarray(np.arange(6.0).reshape(2, 3).T)),
        (np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4")),
        (torch.arange(3), np.arange(3)),
        (bytearray(b"x"), b"x"),
    ]:
        assert digest(one) == digest(other), (one, other)


def test_marks_are_the_same_in_another_process():
    code = "from saccade.data.corpus import mark; print(mark({'a': 'x', 'b': {'c': [1, 2.5]}}, ['b', 'a']))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == mark({"b": {"c": [1, 2.5]}, "a": "x", "ignored": 3}, {"a", "b"})


def hold_out(examples, share, roles):
    held = choose_held_out([mark(example, roles) for example in examples], share)
    parts = [[e for e in examples if (mark(e, roles) in held) == wanted] for wanted in (False, True)]
    return parts[0], parts[1]


def test_equal_inputs_stay_together():
    draw = random.Random(1)
    examples = [{"source": str(draw.randrange(400)), "target": str(n)} for n in range(1000)]
    rest, held = hold_out(examples, 0.1, ["source"])
    assert len(rest) + len(held) == 1000
    assert 80 <= len(held) <= 100
    assert not {e["source"] for e in rest} & {e["source"] for e in held}
    assert hold_out(examples[::-1], 0.1, ["source"])[1] == held[::-1]
    rest, held = hold_out(examples, 0.1, ["source", "target"])
    assert len(held) == 100
    assert hold_out(examples, 0.0, ["source"]) == (examples, [])
    assert [len(part) for part in hold_out(examples[:2], 0.01, ["target"])] == [1, 1]
    assert [len(part) for part in hold_out(examples[:1], 0.01, ["target"])] == [1, 0]


def naive(marks, share, most):
    """The smallest marks first, as long as their examples fit."""
    sizes = {one: marks.count(one) for one in sorted(set(marks))}
    room = min(most, max(1, round(share * len(marks))))
    held = []
    for one, size in sizes.items():
        if size <= room and len(held) < len(sizes) - 1:
            held.append(one)
            room -= size
    return set(held)


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_marks_are_held_out(seed, monkeypatch):
    monkeypatch.setattr("saccade.data.held_out.MOST_HELD_OUT", 23)
    draw = random.Random(seed)
    marks = [draw.randrange(200) for _ in range(draw.randrange(60, 400))]
    share = draw.random() / 2
    assert choose_held_out(marks, share) == naive(marks, share, 23) != set()


def strata_of(names):
    strata = Strata()
    for several in names:
        strata.add(several)
    return strata.rarest()


def labelled(count, seed):
    """Marks, of which some are equal, and labels of which some are rare."""
    draw = random.Random(seed)
    labels = draw.choices("abcd", [60, 30, 9, 1], k=count)
    few = {label: [draw.randrange(2**64) for _ in range(40)] for label in "abcd"}
    return [draw.choice(few[label]) if draw.random() < 0.3 else draw.randrange(2**64) for label in labels], labels


@pytest.mark.parametrize("seed", range(5))
def test_each_label_gives_its_share_of_what_is_held_out(seed):
    marks, labels = labelled(1009, seed)
    held = choose_held_out(marks, 0.1, strata_of([label] for label in labels))
    every, chosen = Counter(labels), Counter(label for m, label in zip(marks, labels, strict=True) if m in held)
    assert 99 <= sum(chosen.values()) <= 101
    assert all(abs(chosen[label] - 0.1 * every[label]) <= 1.0 for label in every)
    assert all(chosen[label] < every[label] for label in every)
    order = list(range(1009))
    random.Random(seed).shuffle(order)
    again = strata_of([labels[n]] for n in order)
    assert choose_held_out([marks[n] for n in order], 0.1, again) == held


def test_the_only_example_of_a_label_is_not_held_out():
    labels = ["a"] * 40 + [f"rare {n}" for n in range(40)]
    held = choose_held_out(range(80), 0.5, strata_of([label] for label in labels))
    assert held == set(range(21))  # 20, and a remainder


def test_an_example_with_several_labels_belongs_to_the_rarest():
    names = [["common"]] * 5 + [["common", "rare"]] * 2 + [[]] * 3 + [["rare"]]
    assert strata_of(names).tolist() == [1] * 5 + [0] * 2 + [2] * 3 + [0]
    assert strata_of([[]] * 3).tolist() == [0] * 3


@pytest.mark.parametrize("count", [2, 7])
def test_folds_are_equal_and_spread_each_label(count):
    marks, labels = labelled(1009, 1)
    strata = strata_of([label] for label in labels)
    folds = choose_folds(marks, count, strata)
    groups = Counter(marks).most_common(1)[0][1]
    sizes = Counter(folds.tolist())
    assert set(sizes) == set(range(count))
    assert max(sizes.values()) - min(sizes.values()) <= groups
    for label in "abcd":
        own = [sum(f == k and each == label for f, each in zip(folds, labels, strict=True)) for k in range(count)]
        assert max(own) - min(own) <= groups
    assert len({(m, f) for m, f in zip(marks, folds.tolist(), strict=True)}) == len(set(marks))  # kept together
    assert choose_folds(marks[::-1], count, strata[::-1]).tolist() == folds.tolist()[::-1]


def test_folds_of_different_inputs_differ_by_one_example():
    labels = ["a"] * 23 + ["b"] * 8
    folds = choose_folds(range(31), 5, strata_of([label] for label in labels))
    for label, spread in (("a", {4, 5}), ("b", {1, 2})):
        assert {sum(folds[n] == k and labels[n] == label for n in range(31)) for k in range(5)} == spread
    assert {int((folds == k).sum()) for k in range(5)} == {6, 7}
    assert sorted(map(int, np.bincount(choose_folds(range(31), 5)))) == [6, 6, 6, 6, 7]


def test_too_many_folds_are_refused():
    with pytest.raises(ValueError, match="9 examples with 3 different inputs cannot be split into 4 folds"):
        choose_folds([1, 2, 3] * 3, 4)


def test_one_huge_group_is_not_held_out_if_another_fits():
    assert choose_held_out([1] * 90 + [2] * 10, 0.1) == {2}
    assert choose_held_out([1] * 90 + [2] * 10, 0.01) == {2}  # none fits: the smallest
    assert choose_held_out([7] * 100, 0.5) == set()
    assert choose_held_out([], 0.5) == set()


def test_few_examples_in_memory_are_all_trained_on():
    assert Corpus().share(99) == 0.0
    assert Corpus().share(100) == Corpus().share() == 0.05
    assert Corpus(held_out=0.5).share(2) == 0.5
    with pytest.raises(ValueError, match=r"held_out must be a share"):
        Corpus(held_out=1.0)
