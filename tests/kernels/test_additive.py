"""Additive scores: the kernel, the chunks and the operator of compiled code against the equation."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from saccade.kernels import additive
from saccade.kernels.additive import additive_scores, additive_scores_reference

PATHS = ["native", "chunks"]


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    if request.param == "chunks":
        monkeypatch.setenv("SACCADE_NATIVE", "0")
        monkeypatch.setattr(additive, "CHUNK", 29_989)
    return request.param


def inputs(batch, queries, keys, hidden, dtype=torch.float64, scale=1.0):
    shapes = ((*batch, queries, hidden), (*batch, keys, hidden), (hidden,))
    return [(torch.randn(shape, dtype=dtype) * scale).requires_grad_() for shape in shapes]


def gradients(function, tensors, towards):
    return torch.autograd.grad((function(*tensors) * towards).sum(), tensors)


@pytest.mark.parametrize(
    ("batch", "queries", "keys", "hidden"),
    [
        ((3,), 7, 11, 13),
        ((2, 5), 3, 7, 17),
        ((), 5, 3, 2),
        ((3,), 1, 11, 37),  # one query: the keys are streamed
        ((1,), 131, 257, 5),  # beyond one block of queries and of keys
        ((2,), 3, 5, 523),  # beyond one block of hidden units
        ((1,), 1, 5, 523),
        ((3,), 0, 11, 13),
        ((3,), 7, 0, 13),
        ((0,), 7, 5, 13),
    ],
)
def test_equation_and_gradients(path, batch, queries, keys, hidden):
    tensors = inputs(batch, queries, keys, hidden)
    towards = torch.randn(*batch, queries, keys, dtype=torch.float64)
    torch.testing.assert_close(additive_scores(*tensors), additive_scores_reference(*tensors))
    ours = gradients(additive_scores, tensors, towards)
    torch.testing.assert_close(ours, gradients(additive_scores_reference, tensors, towards))


@pytest.mark.parametrize("queries", [1, 3])
def test_gradcheck(path, queries):
    tensors = inputs((2,), queries, 3, 5)
    assert gradcheck(additive_scores, tensors)
    assert gradgradcheck(additive_scores, tensors)


@pytest.mark.parametrize("queries", [1, 67])
@pytest.mark.parametrize("scale", [1e-6, 0.1, 3.0, 30.0, 1e4])
def test_float32_is_as_exact_as_the_equation_in_float32(path, scale, queries):
    tensors = inputs((2,), queries, 71, 257, torch.float32, scale)
    tensors[2] = torch.randn(257, requires_grad=True)
    exact = [tensor.detach().double().requires_grad_() for tensor in tensors]
    towards = torch.randn(2, queries, 71)
    size = tensors[2].abs().sum().item()
    error = (additive_scores(*tensors).double() - additive_scores_reference(*exact)).abs().max().item()
    assert error <= 2e-7 * size
    ours = gradients(additive_scores, tensors, towards)
    theirs = gradients(additive_scores_reference, tensors, towards)
    right = gradients(additive_scores_reference, exact, towards.double())
    floor = 2e-7 * towards.abs().sum().item()  # of the vector's gradient, a sum over all pairs
    for mine, plain, truth, lost in zip(ours, theirs, right, (0.0, 0.0, floor), strict=True):
        allowed = 4 * (plain - truth).abs().max().item() + 2e-6 * truth.abs().max().item() + lost
        assert (mine - truth).abs().max().item() <= allowed


def test_extreme_and_ordinary_rows_may_stand_side_by_side(path):
    tensors = inputs((2,), 5, 41, 19, torch.float32)
    with torch.no_grad():
        tensors[0][0, 3] = 1e4
        tensors[0][1, 2, ::2] = -60.0
        tensors[1][0, 7] = -1e4
        tensors[1][1, 40, 3] = 50.0
        tensors[1][1, 20] = 3e38
    torch.testing.assert_close(additive_scores(*tensors), additive_scores_reference(*tensors), rtol=1e-5, atol=1e-5)
    towards = torch.randn(2, 5, 41)
    ours = gradients(additive_scores, tensors, towards)
    torch.testing.assert_close(ours, gradients(additive_scores_reference, tensors, towards), rtol=1e-4, atol=1e-4)


def test_nan_stays_visible(path):
    tensors = [tensor.detach() for tensor in inputs((1,), 3, 37, 11, torch.float32)]
    tensors[0][0, 1, 5] = torch.nan
    assert additive_scores(*tensors).isnan().all(-1).tolist() == [[False, True, False]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_sums_in_float32(path, dtype):
    tensors = inputs((2,), 3, 5, 257, dtype)
    scores = additive_scores(*tensors)
    assert scores.dtype == dtype
    wide = [tensor.detach().float() for tensor in tensors]
    torch.testing.assert_close(scores, additive_scores_reference(*wide).to(dtype))
    assert all(g.dtype == dtype for g in gradients(additive_scores, tensors, torch.ones_like(scores)))


def test_batch_dimensions_broadcast(path):
    query, keys, vector = inputs((3,), 5, 7, 11)
    shared = keys[:1].detach().requires_grad_()
    torch.testing.assert_close(additive_scores(query, shared, vector), additive_scores_reference(query, shared, vector))
    more = query.detach().expand(2, 3, 5, 11)
    torch.testing.assert_close(additive_scores(more, keys, vector), additive_scores_reference(more, keys, vector))


def test_layout_in_memory_does_not_matter(path):
    query, keys, vector = inputs((2,), 5, 7, 12)
    flipped = [query.mT.contiguous().mT, keys.mT.contiguous().mT, vector.repeat_interleave(2)[::2]]
    torch.testing.assert_close(additive_scores(*flipped), additive_scores_reference(query, keys, vector))
    towards = torch.randn(5, 2, 7, dtype=torch.float64).transpose(0, 1)
    leaves = [tensor.detach().requires_grad_() for tensor in flipped]
    ours = gradients(additive_scores, leaves, towards)
    torch.testing.assert_close(ours, gradients(additive_scores_reference, leaves, towards))


def test_chunks_hold_little_at_once(monkeypatch):
    query, keys, _ = inputs((31,), 17, 13, 5)
    monkeypatch.setattr(additive, "CHUNK", 5 * 13 * 5)
    pieces = additive._chunks(query, keys)
    sizes = [query[rows, part].shape[:2].numel() * 13 * 5 for rows, part in pieces]
    assert max(sizes) <= additive.CHUNK
    assert sum(sizes) == 31 * 17 * 13 * 5


def test_compiled_code_calls_the_same_kernel():
    tensors = inputs((2,), 3, 5, 7)
    compiled = torch.compile(additive_scores, backend="aot_eager", fullgraph=True)
    towards = torch.randn(2, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(compiled(*tensors), additive_scores(*tensors))
    torch.testing.assert_close(gradients(compiled, tensors, towards), gradients(additive_scores, tensors, towards))


def test_operators_are_well_formed():
    tensors = inputs((2,), 3, 5, 7)
    torch.library.opcheck(additive.compiled_scores, tensors)
    grad = torch.randn(2, 3, 5, dtype=torch.float64)
    torch.library.opcheck(additive.compiled_backward, (grad, *[t.detach() for t in tensors]))


def test_exported_graphs_hold_plain_operators_alone():
    class Scores(torch.nn.Module):
        def forward(self, query, keys, vector):
            return additive_scores(query, keys, vector)

    tensors = [tensor.detach() for tensor in inputs((2,), 3, 5, 7)]
    program = torch.export.export(Scores(), tuple(tensors))
    assert "saccade" not in str(program.graph)
    torch.testing.assert_close(program.module()(*tensors), additive_scores(*tensors))
