import pytest
import torch
from torch import nn

from saccade.training.averaging import MovingAverage, TriggeredAverage, mean_weights


def test_the_moving_average_is_its_equation():
    model = nn.BatchNorm1d(2)  # has an integer buffer
    average = MovingAverage(model, decay=0.5)
    expected = 1.0
    for step in range(1, 31):
        with torch.no_grad():
            model.weight.fill_(float(step))
        model.num_batches_tracked.fill_(step)
        average.update(model, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    torch.testing.assert_close(average.weights["weight"], torch.full((2,), expected))
    assert average.weights["num_batches_tracked"] == 30


def test_the_average_is_put_in_place_and_taken_out_even_after_an_error():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, decay=0.9)
    old = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1.0)
    with pytest.raises(RuntimeError, match="shapes"), average.in_place(model):  # noqa: PT012
        assert torch.equal(model.weight, old)
        model(torch.zeros(3, 5))
    assert torch.equal(model.weight, old + 1.0)


def trigger_by_the_equation(losses, n):
    """Algorithm 1 of Merity et al. (2018), with the released code's condition, as a loop; -1 if it never triggers."""
    logs = []
    for t, loss in enumerate(losses):
        if t > n and loss > min(logs[:-n]):
            return t
        logs.append(loss)
    return -1


@pytest.mark.parametrize("after", [1, 2, 5])
def test_the_average_starts_where_progress_ends(after):
    generator = torch.Generator().manual_seed(after)
    found = set()
    for _ in range(20):
        losses = (torch.rand(13, generator=generator) - 0.05 * torch.arange(13)).tolist()
        model, average = nn.Linear(2, 1), TriggeredAverage(after)
        started = -1
        for number, loss in enumerate(losses):
            average.observe(model, loss)
            if started < 0 and average.weights is not None:
                started = number
        assert started == trigger_by_the_equation(losses, after)
        found.add(started)
    assert len(found) > 1


def test_the_triggered_average_is_the_mean_of_all_weights_since():
    model, average, seen = nn.BatchNorm1d(2), TriggeredAverage(1), []
    for step, loss in enumerate([3.0, 2.0, 5.0, 1.0, 7.0, 9.0], start=1):
        with torch.no_grad():
            model.weight.fill_(float(step * step))
        model.num_batches_tracked.fill_(step)
        average.update(model, step)
        average.observe(model, loss)
        seen += [float(step * step)] * (step >= 3)
    torch.testing.assert_close(average.weights["weight"], torch.full((2,), sum(seen) / len(seen)))
    assert average.weights["num_batches_tracked"] == 6
    assert average.losses == [3.0, 2.0, 5.0]  # later validations do not matter


def test_a_validation_that_failed_counts_as_worse():
    average = TriggeredAverage(1)
    for loss in (3.0, 2.0, float("nan")):
        average.observe(nn.Linear(2, 1), loss)
    assert average.count == 1


def test_the_mean_of_checkpoints():
    mean = mean_weights({"w": torch.tensor([i, 2.0 * i]), "n": torch.tensor(int(i))} for i in (1.0, 2.0, 6.0))
    assert torch.equal(mean["w"], torch.tensor([3.0, 6.0]))
    assert mean["w"].dtype == torch.float32
    assert mean["n"] == 6
    with pytest.raises(ValueError, match="no checkpoints"):
        mean_weights([])


def test_another_figure_counts_anew():
    model, average = nn.Linear(2, 1), TriggeredAverage(1, "bleu")
    for loss in (-20.0, -25.0):
        average.observe(model, loss)
    resumed = TriggeredAverage(1, "loss")
    resumed.restore(model, None, average.state_dict())
    resumed.observe(model, 1.3)
    assert resumed.weights is None
    same = TriggeredAverage(1, "bleu")
    same.restore(model, None, average.state_dict())
    assert same.losses == average.losses
