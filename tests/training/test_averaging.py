import pytest
import torch
from torch import nn

from saccade.training.averaging import MovingAverage, mean_weights


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


def test_the_mean_of_checkpoints():
    mean = mean_weights({"w": torch.tensor([i, 2.0 * i]), "n": torch.tensor(int(i))} for i in (1.0, 2.0, 6.0))
    assert torch.equal(mean["w"], torch.tensor([3.0, 6.0]))
    assert mean["w"].dtype == torch.float32
    assert mean["n"] == 6
    with pytest.raises(ValueError, match="no checkpoints"):
        mean_weights([])
