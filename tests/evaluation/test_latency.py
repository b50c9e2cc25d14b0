import pytest
import torch

from saccade.evaluation.latency import latency, positions_read


def chosen(positions, sources):
    return torch.nn.functional.one_hot(torch.tensor(positions), sources).double()


def test_what_was_read_is_not_forgotten():
    weights = chosen([1, 0, 3], 5)
    weights[2, 0] = 0.5
    assert positions_read(weights).tolist() == [2, 2, 4]
    assert positions_read(torch.zeros(3, 5)).tolist() == [5, 5, 5]
    assert positions_read(torch.zeros(0, 5)).tolist() == []
    assert positions_read(torch.zeros(3, 0)).tolist() == [0, 0, 0]


def test_known_policies():
    everything = latency([torch.full((3, 7), 1 / 7)])
    assert everything == (7.0, 1.0, 7.0)  # waits for the whole source: it lags by it
    wait_2 = latency([chosen([1, 2, 3, 4, 4], 5)])  # as long as the source, two words behind
    assert wait_2.lagging == pytest.approx(2.0)
    assert wait_2.delay == pytest.approx((2 + 3 + 4 + 5 + 5) / 5)
    assert wait_2.proportion == pytest.approx((2 + 3 + 4 + 5 + 5) / 25)
    both = latency([torch.full((3, 7), 1 / 7), chosen([1, 2, 3, 4, 4], 5), torch.zeros(0, 5)])
    assert both.lagging == pytest.approx((7 + 2) / 2)
    with pytest.raises(ValueError, match="no prediction"):
        latency([])
