"""One alignment from two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.interpretation.alignments import METHODS, symmetrise

LINKS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=18)


def every(forward, backward):
    return {method: set(symmetrise(forward, backward, method)) for method in METHODS}


def test_by_hand() -> None:
    # Both have 0-0 and 4-4. 1-1 touches 0-0 and both of its words are free; 2-1 then touches 1-1, and source 2 is free.
    # 5-4 touches 4-4, and source 5 is free. 8-4, 2-6 and 7-7 touch nothing.
    forward = {(0, 0), (4, 4), (1, 1), (2, 6), (8, 4)}
    backward = {(0, 0), (4, 4), (2, 1), (5, 4), (7, 7)}
    found = every(forward, backward)
    assert found["intersection"] == {(0, 0), (4, 4)}
    assert found["grow-diag"] == {(0, 0), (4, 4), (1, 1), (2, 1), (5, 4)}
    # 2-6: its target is free, 8-4: its source is free, 7-7: both are.
    assert found["grow-diag-final"] == found["grow-diag"] | {(2, 6), (8, 4), (7, 7)}
    assert found["grow-diag-final-and"] == found["grow-diag"] | {(7, 7)}
    assert found["union"] == forward | backward


def test_growth_goes_on_from_what_it_added() -> None:
    chain = {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert set(symmetrise({(0, 0)}, chain, "grow-diag")) == chain
    backwards = {(3, 0), (2, 1), (1, 2), (0, 3)}
    assert set(symmetrise({(0, 3)}, backwards, "grow-diag")) == backwards


def test_a_word_with_links_on_both_sides_takes_no_more() -> None:
    square = {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert set(symmetrise({(0, 0), (1, 1)}, square, "grow-diag")) == {(0, 0), (1, 1)}


def test_forward_links_are_tried_first() -> None:
    assert symmetrise({(0, 5)}, {(9, 5)}, "grow-diag-final-and") == [(0, 5)]
    assert symmetrise({(9, 5)}, {(0, 5)}, "grow-diag-final-and") == [(9, 5)]


@given(forward=LINKS, backward=LINKS)
def test_every_method_lies_between_intersection_and_union(forward, backward) -> None:
    found = every(forward, backward)
    assert found["intersection"] == forward & backward
    assert found["union"] == forward | backward
    assert found["intersection"] <= found["grow-diag"]
    for final in ("grow-diag-final", "grow-diag-final-and"):
        assert found["grow-diag"] <= found[final] <= found["union"]
    # After the final step no link of either direction has two free words; without "and", not even one.
    for method, free in (("grow-diag-final", 1), ("grow-diag-final-and", 2)):
        sources, targets = {s for s, _ in found[method]}, {t for _, t in found[method]}
        assert not [link for link in forward | backward if (link[0] not in sources) + (link[1] not in targets) >= free]


def test_and_may_keep_a_link_that_is_not_in_the_larger_set() -> None:
    # 0-0 is shared. Either word of 5-5 gets a link by "final" (5-0, 0-5) before 5-5, a backward one, is tried.
    found = every({(0, 0), (5, 0), (0, 5)}, {(0, 0), (5, 5)})
    assert (5, 5) in found["grow-diag-final-and"] - found["grow-diag-final"]


@given(links=LINKS)
def test_two_equal_directions_give_themselves(links) -> None:
    assert all(found == links for found in every(links, links).values())


@given(forward=LINKS, backward=LINKS)
def test_grow_diag_is_the_published_loop(forward, backward) -> None:
    union, linked = forward | backward, forward & backward
    grown = True
    while grown:
        grown = False
        for target in range(5):
            for source in range(7):
                if (source, target) not in linked:
                    continue
                for right, down in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                    s, t = source + right, target + down
                    row = any((s, other) in linked for other in range(5))
                    column = any((other, t) in linked for other in range(7))
                    if (s, t) in union and (not row or not column) and (s, t) not in linked:
                        linked = linked | {(s, t)}
                        grown = True
    assert set(symmetrise(forward, backward, "grow-diag")) == linked


def test_unknown_methods_are_named() -> None:
    with pytest.raises(ValueError, match="Did you mean 'grow-diag-final"):
        symmetrise([], [], "grow-diag-fnal")
