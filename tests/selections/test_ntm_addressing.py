import math

import pytest
import torch

from saccade.selections import NTMAddressing


def literal(selection, scores, query):
    """Graves' four equations for one batch row without masked keys, as loops."""
    size, reach = scores.shape[-1], selection.shift_range
    weights, rows = [1.0] + [0.0] * (size - 1), []
    for row, q in zip(scores, query, strict=True):
        g = 1 / (1 + math.exp(-selection.gate_proj(q).item()))
        gamma = 1 + math.log1p(math.exp(selection.sharpen_proj(q).item()))
        energies = [math.exp(e) for e in selection.shift_proj(q).tolist()]
        kappa = {m - reach: e / sum(energies) for m, e in enumerate(energies)}
        content = [math.exp(e) for e in row.tolist()]
        mixed = [g * c / sum(content) + (1 - g) * w for c, w in zip(content, weights, strict=True)]
        shifted = [sum(mixed[(i - d) % size] * s for d, s in kappa.items()) for i in range(size)]
        sharp = [w**gamma for w in shifted]
        weights = [w / sum(sharp) for w in sharp]
        rows.append(weights)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 3, 13])
@pytest.mark.parametrize("shift_range", [0, 1, 2])
def test_equals_the_loop(size, shift_range):
    selection = NTMAddressing(query_dim=5, shift_range=shift_range).double()
    scores, query = torch.randn(7, size, dtype=torch.float64), 2 * torch.randn(7, 5, dtype=torch.float64)
    weights = selection(scores, query=query).marginals
    torch.testing.assert_close(weights, literal(selection, scores, query))


def test_circle_closes_at_the_true_length_of_each_row():
    selection = NTMAddressing(query_dim=5, shift_range=2).double()
    scores, query = torch.randn(2, 7, 13, dtype=torch.float64), torch.randn(2, 7, 5, dtype=torch.float64)
    kept = torch.stack([torch.arange(13) < 5, torch.arange(13) % 3 != 0])
    weights = selection(scores, kept[:, None], query=query).marginals
    for b in range(2):
        torch.testing.assert_close(weights[b][:, kept[b]], literal(selection, scores[b][:, kept[b]], query[b]))


@pytest.mark.parametrize("training", [False, True])
def test_one_query_at_a_time(training):
    selection = NTMAddressing(query_dim=5).double().train(training)
    scores, query = torch.randn(3, 7, 11, dtype=torch.float64), torch.randn(3, 7, 5, dtype=torch.float64)
    mask = torch.arange(11) < torch.tensor([11, 5, 0])[:, None, None]
    together = selection(scores, mask, query=query).marginals
    state = None
    for i in range(7):
        one = selection(scores[:, i : i + 1], mask, query=query[:, i : i + 1], state=state)
        state = selection.advance(state, one)
        torch.testing.assert_close(one.marginals, together[:, i : i + 1])


def test_gradients_reach_gate_shift_and_sharpness_through_time():
    selection = NTMAddressing(query_dim=5)
    query = torch.randn(2, 3, 5, requires_grad=True)
    weights = selection(torch.randn(2, 3, 7), query=query).marginals
    (weights[:, -1] * torch.randn(7)).sum().backward()
    assert all((p.grad != 0).any() for p in selection.parameters())
    assert (query.grad[:, 0] != 0).any()


def test_channels_share_the_query():
    selection = NTMAddressing(query_dim=5).double()
    scores, query = torch.randn(2, 3, 7, 11, dtype=torch.float64), torch.randn(2, 7, 5, dtype=torch.float64)
    weights = selection(scores, query=query).marginals
    for channel in range(3):
        torch.testing.assert_close(weights[:, channel], selection(scores[:, channel], query=query).marginals)


def test_query_is_checked():
    with pytest.raises(ValueError, match="query=None"):
        NTMAddressing(query_dim=5)(torch.randn(3, 7))
    with pytest.raises(ValueError, match="query_dim=5"):
        NTMAddressing(query_dim=5)(torch.randn(3, 7), query=torch.randn(3, 4))
    with pytest.raises(ValueError, match="shift_range must be 0 or more, got -1"):
        NTMAddressing(query_dim=5, shift_range=-1)
