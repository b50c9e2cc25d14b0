"""RNNsearch with monotonic attention reads no source after the one where it stops."""

import pytest
import torch

from saccade import selections
from saccade.evaluation.latency import latency, positions_read
from saccade.models import RNNSearch
from saccade.search import beam, greedy
from tests.models.family import SMALL

KINDS = {
    "monotonic": lambda: RNNSearch(**SMALL, selection=selections.Monotonic(offset=0.5), online=True),
    "mocha": lambda: RNNSearch(**SMALL, selection=selections.MoChA(width=3, offset=0.5), online=True),
}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", KINDS)
def test_what_was_not_read_changes_nothing(name, size, monkeypatch):
    torch.manual_seed(0)
    model = KINDS[name]().double().eval()
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    mask = torch.ones(1, 13, dtype=torch.bool)
    read, step = [], model.step

    def reading(*given):
        made = step(*given)
        read.append(int(max(positions_read(row[None]) for row in made.weights)))
        return made

    monkeypatch.setattr(model, "step", reading)

    def search(row):
        encoded = model.encode(row, mask)
        if size == 1:
            return greedy(model, encoded, max_length=4)[0]
        return beam(model, encoded, max_length=4, size=size)[0][0]

    found, unread = [], 0
    for row in torch.randint(4, 13, (17, 13)).split(1):
        read.clear()
        hypothesis = search(row)
        found.append(hypothesis)
        unread += 13 - max(read)
        other = row.clone()
        other[:, max(read) :] = (other[:, max(read) :] - 4 + 3) % 9 + 4
        again = search(other)
        assert again.tokens == hypothesis.tokens
        assert again.log_prob == pytest.approx(hypothesis.log_prob)
    assert unread > 17
    assert 0 < latency([h.weights for h in found]).proportion < 1


def test_online_needs_a_selection_that_stops():
    with pytest.raises(ValueError, match="needs the selection"):
        RNNSearch(**SMALL, online=True)
    with pytest.raises(ValueError, match="needs the selection"):
        RNNSearch(**SMALL, online=True, selection=selections.Monotonic(hard_at_eval=False))
    with pytest.raises(ValueError, match="uses its own encoder"):
        RNNSearch(**SMALL, online=True, selection="monotonic", encoder="convolutional")


def test_the_encoder_that_reads_forwards_is_that_of_online_models():
    torch.manual_seed(0)
    soft, online = RNNSearch(**SMALL, encoder="rnn"), RNNSearch(**SMALL, selection="monotonic", online=True)
    assert [p.shape for p in soft.encoder.parameters()] == [p.shape for p in online.encoder.parameters()]
    source, mask = torch.randint(4, 13, (2, 7)), torch.ones(2, 7, dtype=torch.bool)
    other = source.clone()
    other[:, 5:] = (source[:, 5:] - 3) % 9 + 4
    states, changed = (soft.encode(each, mask).states for each in (source, other))
    torch.testing.assert_close(states[:, :5], changed[:, :5])
    assert not torch.equal(states[:, 5], changed[:, 5])
