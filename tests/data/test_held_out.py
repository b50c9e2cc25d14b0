import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from saccade.data.corpus import Corpus, choose_held_out, mark
from saccade.data.held_out import MOST_HELD_OUT
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
    held = choose_held_out((mark(example, roles) for example in examples), share)
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


def naive(marks, share):
    """All groups at once, without a heap."""
    sizes = {one: marks.count(one) for one in sorted(set(marks))}
    room = min(MOST_HELD_OUT, max(1, round(share * len(marks))))
    held = []
    for one, size in list(sizes.items())[:MOST_HELD_OUT]:
        if size <= room and len(held) < len(sizes) - 1:
            held.append(one)
            room -= size
    return set(held)


@pytest.mark.parametrize("seed", range(5))
def test_one_pass_chooses_what_all_groups_would(seed, monkeypatch):
    monkeypatch.setattr("saccade.data.held_out.MOST_HELD_OUT", 20)
    monkeypatch.setitem(globals(), "MOST_HELD_OUT", 20)
    draw = random.Random(seed)
    marks = [draw.randrange(200) for _ in range(draw.randrange(60, 400))]
    share = draw.random() / 2
    assert choose_held_out(iter(marks), share) == naive(marks, share) != set()


def test_one_huge_group_is_not_held_out_if_another_fits():
    assert choose_held_out([1] * 90 + [2] * 10, 0.1) == {2}
    assert choose_held_out([1] * 90 + [2] * 10, 0.01) == {2}  # none fits: the smallest
    assert choose_held_out([7] * 100, 0.5) == set()
    assert choose_held_out([], 0.5) == set()


def test_few_examples_in_memory_are_all_trained_on():
    assert Corpus().share(99) == 0.0
    assert Corpus().share(100) == Corpus().share() == 0.05
    assert Corpus(held_out=0.5).share(2) == 0.5
    with pytest.raises(ValueError, match=r"data\.held_out is a share"):
        Corpus(held_out=1.0)
