import pytest
import torch

from saccade import Attention
from saccade.scores import AdditiveScore, DotScore, Score
from saccade.selections import MoChA, Monotonic
from saccade.selections.mocha import chunkwise


def double_sum(alpha, energies, width):
    """Chiu and Raffel's equation for beta, term by term, for one batch row."""
    queries, keys = alpha.shape
    beta = torch.zeros_like(alpha)
    for i in range(queries):
        for j in range(keys):
            for k in range(j, min(j + width, keys)):
                chunk = energies[i, max(k - width + 1, 0) : k + 1]
                beta[i, j] += alpha[i, k] * torch.exp(energies[i, j]) / torch.exp(chunk).sum()
    return beta


@pytest.mark.parametrize("width", [1, 2, 3, 8, 20])
def test_equals_the_double_sum(width):
    scores = torch.randn(3, 5, 11, dtype=torch.float64)
    distribution = MoChA(width=width, noise=0.0)(scores)
    alpha = Monotonic(noise=0.0)(scores).marginals
    torch.testing.assert_close(distribution.ends, alpha)
    for b in range(3):
        torch.testing.assert_close(distribution.marginals[b], double_sum(alpha[b], scores[b], width))
    torch.testing.assert_close(distribution.marginals.sum(-1), alpha.sum(-1))


def test_evaluation_reads_softly_where_it_stops():
    scores = torch.randn(3, 5, 11, dtype=torch.float64)
    weights = MoChA(width=3).eval()(scores).marginals
    stops = Monotonic().eval()(scores).marginals
    for b, i in torch.cartesian_prod(torch.arange(3), torch.arange(5)).tolist():
        expected = torch.zeros(11, dtype=torch.float64)
        if stops[b, i].any():
            end = int(stops[b, i].argmax())
            begin = max(end - 2, 0)
            expected[begin : end + 1] = torch.softmax(scores[b, i, begin : end + 1], -1)
        torch.testing.assert_close(weights[b, i], expected)


@pytest.mark.parametrize("training", [False, True])
def test_chunks_count_attendable_keys_alone(training):
    selection = MoChA(width=3, noise=0.0).train(training)
    scores, mask = torch.randn(3, 5, 13, dtype=torch.float64), torch.arange(13) % 3 != 0
    weights = selection(scores, mask).marginals
    torch.testing.assert_close(weights[..., mask], selection(scores[..., mask]).marginals)
    assert (weights[..., ~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_extreme_energies(dtype):
    ends = torch.softmax(torch.randn(2, 3, 7), -1).to(dtype)
    energies = (1e4 * torch.randn(2, 3, 7).sign()).to(dtype).requires_grad_()
    weights = chunkwise(ends, energies, torch.ones(2, 3, 7, dtype=torch.bool), 3)
    torch.testing.assert_close(weights.sum(-1), ends.sum(-1).to(weights.dtype), rtol=1e-2, atol=0)
    (weights * torch.arange(7)).sum().backward()
    assert energies.grad.isfinite().all()


def test_chunk_score_of_its_own():
    chunk_score = AdditiveScore(query_dim=5, key_dim=7, hidden_dim=3).double()
    selection = MoChA(width=2, noise=0.0, chunk_score=chunk_score)
    query, keys = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 11, 7, dtype=torch.float64)
    scores = torch.randn(2, 3, 11, dtype=torch.float64)
    distribution = selection(scores, query=query, prepared=selection.prepare(keys))
    energies = chunk_score(query, keys)
    for b in range(2):
        expected = double_sum(distribution.ends[b], energies[b], 2)
        torch.testing.assert_close(distribution.marginals[b], expected)
    distribution.marginals[..., 4].sum().backward()
    assert all((p.grad != 0).any() for p in chunk_score.parameters())


def test_memory_grows_with_a_chunk_score():
    chunk_score = AdditiveScore(query_dim=5, key_dim=5, hidden_dim=3)
    attention = Attention(score=DotScore(), selection=MoChA(chunk_score=chunk_score, noise=0.0))
    query, keys = torch.randn(2, 3, 5), torch.randn(2, 11, 5)
    grown = attention.prepare(keys[:, :7]).append(keys[:, 7:])
    torch.testing.assert_close(attention.read(query, grown).context, attention(query, keys).context)


@pytest.mark.parametrize("training", [False, True])
def test_one_query_at_a_time(training):
    selection = MoChA(width=3, noise=0.0).train(training)
    scores = torch.randn(3, 7, 11, dtype=torch.float64) - 1
    mask = torch.arange(11) < torch.tensor([11, 5, 0])[:, None, None]
    together = selection(scores, mask).marginals
    state = None
    for start, stop in ((0, 1), (1, 1), (1, 4), (4, 7)):
        part = selection(scores[:, start:stop], mask, state=state)
        state = selection.advance(state, part)
        torch.testing.assert_close(part.marginals, together[:, start:stop])


def test_parts_join_with_their_ends():
    selection = MoChA(noise=0.0)
    parts = [selection(torch.randn(2, 1, 5)) for _ in range(3)]
    joined = type(parts[0]).cat(parts)
    assert joined.defective
    torch.testing.assert_close(joined.ends, torch.cat([part.ends for part in parts], dim=-2))


def test_gradients():
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None, None]
    selection = MoChA(width=3, noise=0.0)
    assert torch.autograd.gradcheck(lambda s: selection(s, mask).marginals, (scores,))


def test_arguments_are_checked():
    class Remembering(Score):
        stateful = True

    with pytest.raises(ValueError, match="width must be 1 or more, got 0"):
        MoChA(width=0)
    with pytest.raises(TypeError, match="chunk_score must be a Score or None, got 'dot'"):
        MoChA(chunk_score="dot")
    with pytest.raises(ValueError, match="Remembering"):
        MoChA(chunk_score=Remembering())
    with pytest.raises(ValueError, match="prepared="):
        MoChA(chunk_score=DotScore())(torch.randn(3, 7))
