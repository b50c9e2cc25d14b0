import pytest
import torch

from saccade.selections import Windowed


def literal(scores, half_width, beta):
    """Chorowski's window as a loop over lists; the first is around position 0."""
    previous, rows = [1.0] + [0.0] * (scores.shape[-1] - 1), []
    for row in scores.tolist():
        mass, median = 0.0, 0
        for j, weight in enumerate(previous):
            mass += weight
            if mass >= 0.5 * sum(previous):
                median = j
                break
        inside = [j for j in range(len(row)) if abs(j - median) <= half_width]
        total = sum(torch.tensor(beta * row[j], dtype=torch.float64).exp().item() for j in inside)
        previous = [0.0] * len(row)
        for j in inside:
            previous[j] = torch.tensor(beta * row[j], dtype=torch.float64).exp().item() / total
        rows.append(previous)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("half_width", [0, 1, 2, 5, 40])
def test_equals_the_loop(half_width):
    scores = 3 * torch.randn(3, 11, 13, dtype=torch.float64)
    weights = Windowed(half_width=half_width, inverse_temperature=1.7)(scores).marginals
    for b in range(3):
        torch.testing.assert_close(weights[b], literal(scores[b], half_width, 1.7))


def test_window_moves_along_with_the_median():
    # Each score prefers the far end, so that the window moves by its half-width at each step.
    scores = torch.arange(13.0).mul(50).expand(4, 13)
    assert Windowed(half_width=3)(scores).marginals.argmax(-1).tolist() == [3, 6, 9, 12]


def test_masked_keys_do_not_take_up_the_window():
    scores = torch.randn(5, 13, dtype=torch.float64)
    mask = torch.arange(13) % 3 != 1
    weights = Windowed(half_width=2)(scores, mask).marginals
    torch.testing.assert_close(weights[:, mask], Windowed(half_width=2)(scores[:, mask]).marginals)


def test_median_on_a_key_that_may_not_be_attended_now():
    state = torch.tensor([[0, 0, 0, 0, 1.0]])
    mask = torch.tensor([[True, True, True, False, False]])
    weights = Windowed(half_width=0)(torch.zeros(1, 5), mask, state=state).marginals
    assert weights.tolist() == [[0, 0, 1, 0, 0]]  # the last attendable key


@pytest.mark.parametrize("training", [False, True])
def test_one_query_at_a_time(training):
    selection = Windowed(half_width=2).train(training)
    scores, mask = (
        torch.randn(3, 7, 11, dtype=torch.float64),
        torch.arange(11) < torch.tensor([11, 5, 0])[:, None, None],
    )
    together = selection(scores, mask).marginals
    state = None
    for i in range(7):
        one = selection(scores[:, i : i + 1], mask, state=state)
        state = selection.advance(state, one)
        torch.testing.assert_close(one.marginals, together[:, i : i + 1])


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="half_width must be 0 or more, got -1"):
        Windowed(half_width=-1)
    with pytest.raises(ValueError, match="inverse_temperature must be above 0, got 0"):
        Windowed(inverse_temperature=0)
