"""Attention along edges: kernels against plain operators, forward, backward and backward again."""

import pytest
import torch

from saccade.kernels import native
from saccade.kernels.graph import nonzero_rows, read_neighbours
from saccade.kernels.graph_scores import gat_scores, gatv2_scores
from saccade.kernels.modes import plainly

needs_compiler = pytest.mark.skipif(native._load() is None, reason="there is no C compiler")


def graph(nodes=13, edges=47):
    """Some nodes have no neighbours, some pairs have several edges."""
    rows = torch.randint(1, nodes - 1, (edges,)).sort().values
    return torch.searchsorted(rows, torch.arange(nodes + 1)), torch.randint(0, nodes, (edges,))


def tensors(name, nodes, edges, heads, dim, dtype, with_edges):
    """The inputs of a kernel that have gradients, and how to call it."""

    def random(*shape):
        return torch.randn(*shape, dtype=dtype, requires_grad=True)

    if name == "read":
        return [random(edges, heads), random(nodes, heads, dim)], read_neighbours
    if name == "gat":
        given = [random(nodes, heads), random(nodes, heads)] + [random(edges, heads)] * with_edges

        def gat(queries, keys, *rest):
            return gat_scores(queries, keys, rest[0] if with_edges else None, *rest[-2:], 0.2)

        return given, gat
    given = [random(nodes, heads, dim), random(nodes, heads, dim), random(heads, dim)]
    given += [random(edges, heads, dim)] * with_edges

    def gatv2(queries, keys, vector, *rest):
        return gatv2_scores(queries, keys, rest[0] if with_edges else None, vector, *rest[-2:], 0.2)

    return given, gatv2


CASES = [("read", False), ("gat", False), ("gat", True), ("gatv2", False), ("gatv2", True)]


@needs_compiler
@pytest.mark.parametrize(("name", "with_edges"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("heads", "dim"), [(1, 7), (8, 16), (3, 8), (2, 5)])
def test_kernel_and_reference(name, with_edges, dtype, heads, dim):
    where = graph()
    given, function = tensors(name, 13, 47, heads, dim, dtype, with_edges)
    found = function(*given, *where)
    towards = torch.randn_like(found)
    with plainly():
        expected = function(*given, *where)
        plain = torch.autograd.grad(expected, given, towards)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
    torch.testing.assert_close(found, expected, **close)
    for one, other in zip(torch.autograd.grad(found, given, towards), plain, strict=True):
        torch.testing.assert_close(one, other, **close)


@pytest.mark.parametrize(("name", "with_edges"), CASES)
def test_gradients_of_gradients(name, with_edges):
    where = graph(5, 7)
    given, function = tensors(name, 5, 7, 2, 3, torch.float64, with_edges)
    assert torch.autograd.gradgradcheck(lambda *inputs: function(*inputs, *where), given)


@needs_compiler
@pytest.mark.parametrize(("name", "with_edges"), CASES)
def test_threads_do_not_change_a_bit(name, with_edges):
    where = graph(401, 9001)
    given, function = tensors(name, 401, 9001, 2, 8, torch.float32, with_edges)
    towards = torch.randn_like(function(*given, *where))
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found = function(*given, *where)
            results.append([found, *torch.autograd.grad(found, given, towards)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize("width", [1, 15, 16, 37])
def test_nonzero_rows(width):
    matrix = torch.randn(7, width) * (torch.rand(7, width) < 0.3)
    matrix[2] = 0
    starts, columns, values = nonzero_rows(matrix, matrix.numel())
    rows = torch.repeat_interleave(torch.arange(7), starts.diff())
    assert torch.equal(torch.zeros(7, width).index_put((rows, columns), values), matrix)
    with plainly():
        for one, other in zip(nonzero_rows(matrix, matrix.numel()), (starts, columns, values), strict=True):
            assert torch.equal(one, other)
    full = torch.ones(7, width)
    assert nonzero_rows(full, full.numel() - 1) is None
    with plainly():
        assert nonzero_rows(full, full.numel() - 1) is None


def test_numbers_of_different_types_are_not_read_as_one_type():
    weights, values = torch.rand(3, 2), torch.rand(2, 2, 5, dtype=torch.float64)
    starts, neighbours = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1])
    found = read_neighbours(weights, values, starts, neighbours)
    assert torch.allclose(found, read_neighbours(weights.double(), values, starts, neighbours))
    with pytest.raises(RuntimeError, match="same scalar type"):
        read_neighbours(weights.double(), values.float(), starts, neighbours)
