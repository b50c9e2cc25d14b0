import itertools
import math

import pytest
import torch

from saccade import Attention
from saccade.scores import DotScore
from saccade.selections import Monotonic


def enumerate_walks(p):
    """alpha by the sum over every monotone walk; position `keys` is beyond the end, and cannot be left."""
    queries, keys = p.shape
    alpha = torch.zeros_like(p)
    for walk in itertools.product(range(keys + 1), repeat=queries):
        start, probability = 0, 1.0
        for i, stop in enumerate(walk):
            if stop < start:
                probability = 0.0
                break
            probability *= math.prod(1 - p[i, j].item() for j in range(start, stop))
            probability *= p[i, stop].item() if stop < keys else 1.0
            start = stop
        for i, stop in enumerate(walk):
            if stop < keys:
                alpha[i, stop] += probability
    return alpha


def walk_hard(p, threshold=0.5):
    """Raffel's decoding: from the last position on, the first key with p >= threshold."""
    weights, start = torch.zeros_like(p), 0
    for i in range(len(p)):
        start = next((j for j in range(start, p.shape[1]) if p[i, j] >= threshold), p.shape[1])
        if start < p.shape[1]:
            weights[i, start] = 1.0
    return weights


def test_expectation_is_the_sum_over_all_walks():
    scores = 1.5 * torch.randn(3, 3, 5, dtype=torch.float64)
    alpha = Monotonic(noise=0.0)(scores).marginals
    for b in range(3):
        torch.testing.assert_close(alpha[b], enumerate_walks(torch.sigmoid(scores[b])))


def test_evaluation_walks():
    scores = torch.randn(13, 7, 11, dtype=torch.float64)
    weights = Monotonic().eval()(scores).marginals
    for b in range(13):
        assert torch.equal(weights[b], walk_hard(torch.sigmoid(scores[b])))


def test_threshold_and_offset():
    scores = torch.randn(5, 3, 11, dtype=torch.float64)
    weights = Monotonic(threshold=0.8, offset=0.7).eval()(scores).marginals
    for b in range(5):
        assert torch.equal(weights[b], walk_hard(torch.sigmoid(scores[b] + 0.7), 0.8))


def test_saturated_expectation_is_the_walk():
    scores = 1e4 * torch.randn(5, 7, 11, dtype=torch.float64).sign()
    torch.testing.assert_close(Monotonic(noise=0.0)(scores).marginals, Monotonic().eval()(scores).marginals)


def test_evaluation_with_the_expectation():
    scores = torch.randn(2, 3, 5)
    expected = Monotonic(noise=0.0)(scores).marginals
    torch.testing.assert_close(Monotonic(hard_at_eval=False).eval()(scores).marginals, expected)


def test_off_the_end_reads_nothing_ever_after():
    scores = torch.tensor([[-5.0, -5.0, -5.0], [5.0, 5.0, 5.0]])
    distribution = Monotonic().eval()(scores)
    assert (distribution.marginals == 0).all()
    assert (distribution.mode == 0).all()
    trained = Monotonic(noise=0.0)(scores).marginals
    p = torch.sigmoid(torch.tensor(-5.0)).item()
    assert trained[0].sum().item() == pytest.approx(1 - (1 - p) ** 3, rel=1e-5)
    assert (trained[1].sum() <= trained[0].sum()).all()


def test_masked_keys_are_walked_past():
    scores, mask = torch.randn(5, 7, 11, dtype=torch.float64), torch.arange(11) % 3 != 0
    for selection in (Monotonic(noise=0.0), Monotonic().eval()):
        torch.testing.assert_close(selection(scores, mask).marginals[..., mask], selection(scores[..., mask]).marginals)


def test_long_rows_with_small_probabilities():
    # 1 - p to the power of 5,000 underflows: where products are divided by, nothing would be left.
    scores = torch.full((1, 5003), -1.0)
    scores[0, :5000] = -30.0
    alpha = Monotonic(noise=0.0)(scores).marginals
    p = torch.sigmoid(torch.tensor(-1.0)).item()
    torch.testing.assert_close(alpha[0, 5000:], torch.tensor([p, p * (1 - p), p * (1 - p) ** 2]))
    steep = torch.full((2, 1009), 3.0)
    steep[1, :500] = -1e4
    rows = Monotonic(noise=0.0)(steep).marginals
    assert rows[1, 500].item() == pytest.approx(torch.sigmoid(torch.tensor(3.0)).item(), rel=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_one_query_at_a_time(training):
    selection = Monotonic(noise=0.0).train(training)
    scores = torch.randn(3, 7, 11, dtype=torch.float64) - 1
    mask = torch.arange(11) < torch.tensor([11, 5, 0])[:, None, None]
    together = selection(scores, mask).marginals
    state = None
    for start, stop in ((0, 1), (1, 1), (1, 4), (4, 7)):
        part = selection(scores[:, start:stop], mask, state=state)
        state = selection.advance(state, part)
        torch.testing.assert_close(part.marginals, together[:, start:stop])


@pytest.mark.parametrize("training", [False, True])
def test_keys_that_come_later_are_walked_to(training):
    # Online reading: a walk that stopped before the end goes on over keys appended since.
    selection = Monotonic(noise=0.0).train(training)
    scores = torch.randn(2, 11)
    scores[0, 2] = 1e4  # so that nothing of the first walk passes the first five keys
    first = selection(scores[:1, :5])
    second = selection(scores[1:], state=selection.advance(None, first))
    torch.testing.assert_close(second.marginals, selection(scores).marginals[1:])


def test_noise_falls_in_training_alone():
    scores = torch.randn(3, 5, 7)
    noisy = Monotonic(noise=1.0, hard_at_eval=False)
    assert not torch.equal(noisy(scores).marginals, noisy(scores).marginals)
    noisy.eval()
    assert torch.equal(noisy(scores).marginals, noisy(scores).marginals)


def test_stochastic_says_whether_training_and_evaluation_differ():
    assert Monotonic().stochastic
    assert Monotonic(noise=0.0).stochastic
    assert not Monotonic(noise=0.0, hard_at_eval=False).stochastic


def test_gradients_flow_through_time():
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    selection = Monotonic(noise=0.0, learn_offset=True).double()
    selection(scores).marginals[:, -1, -1].sum().backward()
    assert (scores.grad[:, 0] != 0).any()
    assert selection.offset.grad != 0
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None, None]
    assert torch.autograd.gradcheck(lambda s: selection(s, mask).marginals, (scores,))


def test_attention_passes_the_state_on():
    attention = Attention(score=DotScore(), selection=Monotonic()).eval()
    query, keys = torch.randn(3, 7, 5), torch.randn(3, 11, 5)
    memory = attention.prepare(keys)
    together, state = attention.read(query, memory), None
    for i in range(7):
        reading = attention.read(query[:, i : i + 1], memory, state=state)
        state = reading.state
        torch.testing.assert_close(reading.context, together.context[:, i : i + 1])


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"noise must be 0 or more, got -1\.0"):
        Monotonic(noise=-1.0)
    with pytest.raises(ValueError, match=r"threshold must be between 0 and 1, got 1\.0"):
        Monotonic(threshold=1.0)
    with pytest.raises(ValueError, match="state of shape"):
        Monotonic()(torch.randn(3, 5, 7), state=torch.randn(3, 1, 8))
