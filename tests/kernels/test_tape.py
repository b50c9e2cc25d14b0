"""Tapes against concatenation: values, gradients, and that a tape is a value."""

import pytest
import torch

from saccade.kernels.tape import extend, extend_reference, reserve

BATCH, DIMS = 3, (5, 7)


def rows(count=1):
    return [torch.randn(BATCH, count, dim, dtype=torch.float64, requires_grad=True) for dim in DIMS]


def empty():
    return [torch.zeros(BATCH, 0, dim, dtype=torch.float64) for dim in DIMS]


def mixed(tensors):
    """A number that depends on every row of every step, each in its own way."""
    return sum((each.sin() * torch.arange(1.0, each.numel() + 1).view_as(each).to(each)).sum() for each in tensors)


@pytest.mark.parametrize("room", [0, 2, 11])
@pytest.mark.parametrize("count", [1, 2])
def test_extending_is_concatenating(room, count):
    torch.manual_seed(0)
    new = [rows(count) for _ in range(5)]
    tape, plain = reserve(empty(), room), empty()
    ours = theirs = 0.0
    for each in new:
        tape, read = extend(tape, each)
        plain = extend_reference(plain, each)
        torch.testing.assert_close(read, plain, rtol=0, atol=0)
        ours, theirs = ours + mixed(read), theirs + mixed(plain)
    assert tape.length == 5 * count
    leaves = [row for each in new for row in each]
    for _ in range(2):  # a second backward pass finds nothing left over from the first
        found = torch.autograd.grad(ours, leaves, retain_graph=True)
        torch.testing.assert_close(found, torch.autograd.grad(theirs, leaves, retain_graph=True))
    late = torch.autograd.grad(ours, new[3], retain_graph=True)  # leaves the first steps out of the graph
    torch.testing.assert_close(late, torch.autograd.grad(theirs, new[3], retain_graph=True))
    torch.testing.assert_close(torch.autograd.grad(ours, leaves), found)


def test_it_begins_with_what_it_is_given():
    torch.manual_seed(0)
    first, new = rows(3), rows()
    _, read = extend(reserve(first, 5), new)
    plain = extend_reference(first, new)
    torch.testing.assert_close(read, plain)
    leaves = [*first, *new]
    torch.testing.assert_close(torch.autograd.grad(mixed(read), leaves), torch.autograd.grad(mixed(plain), leaves))


def test_two_tapes_of_one_do_not_disturb_each_other():
    torch.manual_seed(0)
    first, left, right = rows(), rows(), rows()
    start, _ = extend(reserve(empty(), 7), first)
    _, one = extend(start, left)
    _, other = extend(start, right)
    torch.testing.assert_close(one, extend_reference(first, left))
    torch.testing.assert_close(other, extend_reference(first, right))
    leaves = [*first, *left, *right]
    plain = mixed(extend_reference(first, left)) + mixed(extend_reference(first, right))
    torch.testing.assert_close(
        torch.autograd.grad(mixed(one) + mixed(other), leaves), torch.autograd.grad(plain, leaves)
    )


def test_nothing_is_copied_while_there_is_room():
    tape = reserve(empty(), 3)
    with torch.no_grad():
        places = []
        for _ in range(4):
            tape, read = extend(tape, rows())
            places.append(read[0].data_ptr())
    assert len(set(places[:3])) == 1
    assert places[3] != places[0]
    assert tape.buffers[0].shape[1] == 6


def test_refuses_rows_that_do_not_fit():
    tape = reserve(empty(), 3)
    assert extend(tape, [row.float() for row in rows()]) is None
    assert extend(tape, [row[:2] for row in rows()]) is None
    assert extend(tape, [row[..., :2] for row in rows()]) is None


def test_not_inside_a_transform():
    def last(row):
        assert reserve([row], 3) is None
        return row.sum()

    torch.func.grad(last)(torch.ones(2, 1, 3))
