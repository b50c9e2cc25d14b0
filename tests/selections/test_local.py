import math

import pytest
import torch
from torch import nn

from saccade import Attention
from saccade.reading import State
from saccade.scores import DotScore
from saccade.selections.local_m import LocalM
from saccade.selections.local_p import LocalP


def predicting(logit: float, **arguments) -> LocalP:
    """A LocalP that predicts position S * sigmoid(logit) for the query [1.0]."""
    selection = LocalP(query_dim=1, **arguments).double()
    nn.init.ones_(selection.query_proj.weight)
    nn.init.constant_(selection.position_proj.weight, logit / math.tanh(1.0))
    return selection


def test_local_p_golden_numbers():
    scores = 0.1 * torch.arange(10, dtype=torch.float64).unsqueeze(0)
    weights = predicting(0.3, half_width=2)(scores, query=torch.ones(1, 1, dtype=torch.float64)).marginals
    expected = torch.zeros(1, 10, dtype=torch.float64)
    expected[0, 4:8] = torch.tensor([0.046698, 0.179134, 0.252790, 0.131234])
    torch.testing.assert_close(weights, expected, atol=5e-7, rtol=0)


def test_local_p_as_a_loop_of_the_equation():
    selection = LocalP(query_dim=5, hidden_dim=3, half_width=2).double()
    query, scores = torch.randn(7, 5, dtype=torch.float64), torch.randn(7, 11, dtype=torch.float64)
    length = 9
    mask = torch.arange(11) < length
    weights = selection(scores, mask.expand(7, 11), query=query).marginals
    for t in range(7):
        hidden = torch.tanh(selection.query_proj.weight @ query[t])
        position = length * torch.sigmoid(selection.position_proj.weight[0] @ hidden)
        position = min(float(position), length - 1)
        window = [s for s in range(length) if abs(s - position) <= 2]
        normaliser = sum(math.exp(scores[t, s]) for s in window)
        for s in range(11):
            gaussian = math.exp(-((s - position) ** 2) / 2)  # sigma = half_width / 2 = 1
            expected = math.exp(scores[t, s]) / normaliser * gaussian if s in window else 0.0
            assert weights[t, s].item() == pytest.approx(expected, abs=1e-12)


def test_renormalised_rows_sum_to_one():
    scores = torch.randn(3, 5, 23, dtype=torch.float64)
    query = torch.randn(3, 5, 7, dtype=torch.float64)
    selection = LocalP(query_dim=7, half_width=3, renormalize=True).double()
    torch.testing.assert_close(selection(scores, query=query).marginals.sum(-1), torch.ones(3, 5, dtype=torch.float64))
    defective = LocalP(query_dim=7, half_width=3).double()(scores, query=query).marginals.sum(-1)
    assert (defective < 1).all()


def test_the_gradient_reaches_the_predicted_position():
    selection = predicting(0.3, half_width=2)
    weights = selection(torch.randn(1, 10, dtype=torch.float64), query=torch.ones(1, 1, dtype=torch.float64)).marginals
    weights[0, 7].backward()
    assert selection.position_proj.weight.grad.abs().item() > 0


def test_local_m_looks_around_the_diagonal_and_stays_inside():
    scores = torch.zeros(13, 7)
    weights = LocalM(half_width=2)(scores, (torch.arange(7) < 5).expand(13, 7)).marginals
    assert weights[0].nonzero().flatten().tolist() == [0, 1, 2]
    assert weights[3].nonzero().flatten().tolist() == [1, 2, 3, 4]
    assert weights[12].nonzero().flatten().tolist() == [2, 3, 4]  # past the end: the last key
    torch.testing.assert_close(weights.sum(-1), torch.ones(13))


def test_local_m_counts_steps_in_its_state():
    scores = torch.randn(11, 13, dtype=torch.float64)
    selection = LocalM(half_width=1)
    at_once = selection(scores).marginals
    first = selection(scores[:4])
    state = selection.advance(None, first)
    torch.testing.assert_close(torch.cat([first.marginals, selection(scores[4:], state=state).marginals]), at_once)


@pytest.mark.parametrize("half_width", [-1, 0])
def test_bad_half_width_is_named(half_width):
    with pytest.raises(ValueError, match=f"half_width.*{half_width}"):
        LocalP(query_dim=3, half_width=half_width)


def test_wrong_query_is_named():
    with pytest.raises(ValueError, match="query_dim=3"):
        LocalP(query_dim=3)(torch.randn(2, 5), query=torch.randn(2, 7))


def test_a_selection_that_selects_in_its_own_way_sees_all_scores():
    class Sharper(LocalM):
        def select(self, scores, mask, **rest):
            return super().select(3.0 * scores, mask, **rest)

    assert LocalM(half_width=1).windowed
    assert not Sharper(half_width=1).windowed
    query, keys = torch.randn(2, 5, 3), torch.randn(2, 11, 3)
    fast, plain = Attention(score=DotScore(), selection=Sharper(half_width=1)), LocalM(half_width=1)
    wanted = Attention(score=DotScore(), selection=plain).read_plain
    memory = fast.prepare(keys)
    weights = fast.read(query, memory).weights
    torch.testing.assert_close(weights, fast.read_plain(query, memory, State()).weights)
    assert not torch.allclose(weights, wanted(query, memory, State()).weights)
