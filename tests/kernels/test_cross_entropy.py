"""The fused cross-entropy is the plain one: value, count of right rows and gradients."""

import math

import pytest
import torch
from torch.nn import functional as F

from saccade.kernels import cross_entropy as module
from saccade.kernels.cross_entropy import cross_entropy, linear_cross_entropy

ROWS, DIM, VOCAB = 37, 5, 29


def tensors(dtype=torch.float64, bias=True, vocab=VOCAB, scale=1.0):
    generator = torch.Generator().manual_seed(ROWS + vocab)
    features = torch.randn(ROWS, DIM, generator=generator, dtype=dtype) * scale
    weight = torch.randn(vocab, DIM, generator=generator, dtype=dtype)
    offset = torch.randn(vocab, generator=generator, dtype=dtype) if bias else None
    targets = torch.randint(2, vocab, (ROWS,), generator=generator)
    return [None if t is None else t.requires_grad_() for t in (features, weight, offset)], targets


def literal(features, weight, bias, targets, smoothing, first):
    """The definition, row by row and class by class."""
    total = features.new_zeros(())
    for row, target in zip(features, targets.tolist(), strict=True):
        logits = [row @ weight[j] + (0 if bias is None else bias[j]) for j in range(len(weight))]
        log_partition = torch.stack(logits).logsumexp(0)
        losses = [log_partition - logit for logit in logits]
        total = total + (1 - smoothing) * losses[target]
        total = total + smoothing * sum(losses[first:]) / len(losses[first:])
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("chunk", [1, 7 * VOCAB, 10**6])
def test_definition(monkeypatch, smoothing, bias, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    given, targets = tensors(bias=bias)
    wanted = literal(*given, targets, smoothing, 2)
    ours = linear_cross_entropy(*given, targets, smoothing=smoothing, first=2)
    torch.testing.assert_close(ours.total, wanted)
    own = [t for t in given if t is not None]
    torch.testing.assert_close(torch.autograd.grad(ours.total * 3, own), torch.autograd.grad(wanted * 3, own))
    logits = F.linear(*given)
    assert ours.right == sum(int(row.argmax()) == t for row, t in zip(logits, targets.tolist(), strict=True))


@pytest.mark.parametrize("vocab", [3, 8, 31, 64])
def test_every_width_of_row(vocab):
    given, targets = tensors(dtype=torch.float32, vocab=vocab)
    ours = linear_cross_entropy(*given, targets, smoothing=0.2, first=1)
    plain = cross_entropy(F.linear(*given), targets, smoothing=0.2, first=1)
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(
        torch.autograd.grad(ours.total, given), torch.autograd.grad(plain.total, given), rtol=1e-4, atol=1e-5
    )


def test_logits_far_apart():
    given, targets = tensors(dtype=torch.float32, scale=1e3)
    ours = linear_cross_entropy(*given, targets, smoothing=0.1, first=2)
    plain = cross_entropy(F.linear(*given), targets, smoothing=0.1, first=2)
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(
        torch.autograd.grad(ours.total, given), torch.autograd.grad(plain.total, given), rtol=1e-4, atol=1e-3
    )


def test_equal_logits_count_for_the_first_class_alone():
    features, weight = torch.zeros(3, DIM), torch.ones(VOCAB, DIM)
    right = linear_cross_entropy(features, weight, None, torch.tensor([0, 1, VOCAB - 1])).right
    assert right == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_a_number_stays_so(bad):
    given, targets = tensors()
    with torch.no_grad():
        given[0][3, 1] = bad
    assert not torch.isfinite(linear_cross_entropy(*given, targets, smoothing=0.1).total)


def test_a_class_that_does_not_exist_is_refused():
    given, targets = tensors()
    targets[5] = VOCAB
    with pytest.raises(IndexError, match=f"0 to {VOCAB - 1}"):
        linear_cross_entropy(*given, targets)


def test_without_gradients():
    given, targets = tensors()
    with torch.no_grad():
        ours = linear_cross_entropy(*given, targets, smoothing=0.1)
    assert not ours.total.requires_grad
    torch.testing.assert_close(ours.total, literal(*given, targets, 0.1, 0).detach())


def test_threads_do_not_change_the_numbers():
    given, targets = tensors(dtype=torch.float32, vocab=6007)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            total = linear_cross_entropy(*given, targets, smoothing=0.1).total
            found.append((total, *torch.autograd.grad(total, given)))
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_no_rows():
    given, targets = tensors()
    empty = linear_cross_entropy(given[0][:0], *given[1:], targets[:0], smoothing=0.1)
    assert empty.total == 0
    assert empty.right == 0


def test_a_retained_graph_gives_the_same_gradients_again():
    features, weight = torch.randn(7, 5, requires_grad=True), torch.randn(11, 5, requires_grad=True)
    total = linear_cross_entropy(features, weight, None, torch.arange(7)).total
    first = torch.autograd.grad(total, (features, weight), retain_graph=True)
    doubled = torch.autograd.grad(2 * total, (features, weight))
    for one, two in zip(first, doubled, strict=True):
        torch.testing.assert_close(2 * one, two)
