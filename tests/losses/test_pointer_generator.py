import math

import pytest
import torch

from saccade.aggregations import copy_distribution
from saccade.losses import pointer_generator_log_likelihood, pointer_generator_log_probs

BATCH, QUERIES, KEYS, VOCAB, EXTRA = 2, 5, 7, 11, 3


def example():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(BATCH, QUERIES, VOCAB, generator=generator, dtype=torch.float64)
    weights = torch.softmax(torch.randn(BATCH, QUERIES, KEYS, generator=generator, dtype=torch.float64), -1)
    gate = torch.randn(BATCH, QUERIES, 1, generator=generator, dtype=torch.float64)
    source = torch.tensor([[3, 3, 12, 0, 12, 5, 11], [13, 1, 1, 1, 4, 13, 2]])
    # In the vocabulary alone, in both (with duplicates), outside the vocabulary (with duplicates), ...
    targets = torch.tensor([[7, 3, 12, 11, 0], [3, 1, 13, 9, 4]])
    return torch.log_softmax(logits, -1), weights, source, gate, targets


def test_both_paths_equal_the_literal_mixture():
    vocab, weights, source, gate, targets = example()
    size = VOCAB + EXTRA
    everything = pointer_generator_log_probs(vocab, copy_distribution(weights, source, size=size), gate)
    gold = pointer_generator_log_likelihood(vocab, weights, source, gate, targets)
    assert everything.shape == (BATCH, QUERIES, size)
    for b in range(BATCH):
        for i in range(QUERIES):
            p_gen = 1 / (1 + math.exp(-gate[b, i, 0]))
            for w in range(size):
                p = p_gen * math.exp(vocab[b, i, w]) if w < VOCAB else 0.0
                p += (1 - p_gen) * sum(weights[b, i, j].item() for j in range(KEYS) if source[b, j] == w)
                expected = math.log(p) if p > 0 else -math.inf
                assert everything[b, i, w].item() == pytest.approx(expected, abs=1e-12)
            assert gold[b, i].item() == pytest.approx(everything[b, i, targets[b, i]].item(), abs=1e-12)
    torch.testing.assert_close(everything.exp().sum(-1), torch.ones(BATCH, QUERIES).double())


def test_gradients_agree_and_check():
    vocab, weights, source, gate, targets = example()
    inputs = [t.clone().requires_grad_() for t in (vocab, weights, gate)]

    def gold(v, w, g):
        return pointer_generator_log_likelihood(v, w, source, g, targets)

    def gathered(v, w, g):
        copied = copy_distribution(w, source, size=VOCAB + EXTRA)
        return pointer_generator_log_probs(v, copied, g).gather(-1, targets.unsqueeze(-1)).squeeze(-1)

    assert torch.autograd.gradcheck(gold, inputs)
    short = torch.autograd.grad(gold(*inputs).sum(), inputs)
    long = torch.autograd.grad(gathered(*inputs).sum(), inputs)
    torch.testing.assert_close(short, long)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gate", [-1e4, 1e4])
def test_extreme_gates_and_logits_stay_in_log_space(dtype, gate):
    logits = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype, requires_grad=True)
    weights = torch.tensor([[0.25, 0.75]], dtype=dtype, requires_grad=True)
    gates = torch.tensor([[gate]], dtype=dtype, requires_grad=True)
    source = torch.tensor([1, 4])
    for target in (0, 1, 4):
        gold = pointer_generator_log_likelihood(
            torch.log_softmax(logits, -1), weights, source, gates, torch.tensor([target])
        )
        gradients = torch.autograd.grad(gold.sum(), [logits, weights, gates], allow_unused=True)
        assert gold.isfinite().all()
        assert all(g is None or g.isfinite().all() for g in gradients)
    full = pointer_generator_log_probs(torch.log_softmax(logits, -1), copy_distribution(weights, source, size=5), gates)
    assert full.isneginf().tolist() == [[False, False, False, True, False]]
    gradients = torch.autograd.grad(full[..., [0, 1, 2, 4]].sum(), [logits, weights, gates])
    assert all(g.isfinite().all() for g in gradients)


def test_empty_attention_leaves_the_generator():
    vocab, weights, source, gate, _ = example()
    nothing = torch.zeros_like(weights).requires_grad_()
    targets = torch.full((BATCH, QUERIES), 3)
    gold = pointer_generator_log_likelihood(vocab, nothing, source, gate, targets)
    torch.testing.assert_close(gold, torch.nn.functional.logsigmoid(gate).squeeze(-1) + vocab[..., 3])
    gold.sum().backward()
    assert (nothing.grad == 0).all()


def test_target_that_is_nowhere_is_impossible_without_nan():
    vocab, weights, source, gate, targets = example()
    gate = gate.clone().requires_grad_()
    targets[0, 0] = 13
    gold = pointer_generator_log_likelihood(vocab, weights, source, gate, targets)
    assert gold[0, 0] == -torch.inf
    gold[1].sum().backward()
    assert gate.grad.isfinite().all()


def test_refuses_what_does_not_fit():
    vocab, weights, source, gate, targets = example()
    with pytest.raises(ValueError, match="must cover the 11 words"):
        pointer_generator_log_probs(vocab, weights, gate)
    with pytest.raises(ValueError, match=r"targets \(\*batch, queries\) = \(2, 5\)"):
        pointer_generator_log_likelihood(vocab, weights, source, gate, targets[:, :2])
    targets[0, 0] = -100
    with pytest.raises(ValueError, match="got -100"):
        pointer_generator_log_likelihood(vocab, weights, source, gate, targets)
