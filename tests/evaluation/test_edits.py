"""Edit distance against the textbook's table."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from saccade.evaluation import Edits, count_edits, edit_distance
from saccade.evaluation.edits import DistanceColumns, _columns, _places, _start

short = st.text(alphabet="abc", max_size=9)


def table(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


@given(short, short)
def test_equals_the_table(first: str, second: str) -> None:
    assert edit_distance(first, second) == table(first, second)


def test_longer_than_a_machine_word() -> None:
    first, second = "abcde" * 40, "abde" * 50
    assert edit_distance(first, second) == table(first, second)


def test_any_hashable_items() -> None:
    assert edit_distance([1, 2, 3], [1, 3]) == 1
    assert edit_distance(["the", "cat"], []) == 2
    assert edit_distance([], ["the", "cat"]) == 2
    assert edit_distance([], []) == 0


@given(short, short)
def test_the_edits_of_a_shortest_way(reference: str, text: str) -> None:
    found = count_edits(reference, text)
    assert sum(found) == table(reference, text)
    assert found.insertions - found.deletions == len(text) - len(reference)
    assert min(found) >= 0


def test_kinds_of_edits() -> None:
    assert count_edits("abc", "axc") == Edits(1, 0, 0)
    assert count_edits("abc", "ac") == Edits(0, 1, 0)
    assert count_edits("ac", "abc") == Edits(0, 0, 1)
    assert count_edits([], ["the", "cat"]) == Edits(0, 0, 2)
    assert count_edits(["the", "cat"], []) == Edits(0, 2, 0)
    assert count_edits("abcd" * 40, "abd" * 40) == Edits(0, 40, 0)


@given(st.text(alphabet="abc", max_size=31), st.text(alphabet="abc", max_size=37))
def test_columns_that_are_computed_again_are_the_same(first: str, second: str) -> None:
    table = DistanceColumns(first, second)
    wanted = [_start(len(first)), *_columns(_places(first), len(first), second)]
    assert [table[number] for number in reversed(range(len(wanted)))] == wanted[::-1]


def test_the_memory_of_long_texts_is_small() -> None:
    reference, text = "abcdefg" * 1000, "abdceg" * 1100
    tracemalloc.start()
    found = count_edits(reference, text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.insertions - found.deletions == len(text) - len(reference)
    assert peak < 2 * len(reference) * len(text) / 8 / 4  # of the bits of the whole table, twice
