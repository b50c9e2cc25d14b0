"""RNNsearch with monotonic attention reads no source after the one where it stops."""

import pytest
import torch

from saccade import selections
from saccade.evaluation.latency import latency, positions_read
from saccade.models import RNNSearch
from saccade.models.online import OnlineReader, is_online
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


FRAMES = {"source_dim": 3, "target_vocab": 11, "embedding_dim": 5, "hidden_dim": 8, "source_stride": 2}


@pytest.mark.parametrize("selection", [selections.Monotonic(offset=-0.5), selections.MoChA(width=3, offset=-0.5)])
def test_a_source_in_parts_gives_what_the_whole_gives(selection):
    torch.manual_seed(0)
    model = RNNSearch(**FRAMES, selection=selection, online=True, encoder_layers=2).eval()
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    early, texts = 0, set()
    for seed in range(7):
        draws = torch.Generator().manual_seed(seed)
        frames = 2 * torch.randn(31, 3, generator=draws)
        (whole,) = greedy(model, model.encode(frames[None], torch.ones(1, 31, dtype=torch.bool)), max_length=9)
        reader, written = OnlineReader(model), []
        cuts = torch.randint(0, 32, (5,), generator=draws).sort().values.tolist()
        for part in frames.tensor_split(cuts):
            written += reader.push(part, most=9)
        early += len(written)
        written += reader.push(frames[:0], last=True, most=9)
        tokens = [each.token for each in written]
        assert [token for token in tokens if token != 2] == whole.tokens
        assert (tokens[-1] == 2) == whole.finished
        for each, weights in zip(written, whole.weights, strict=False):
            torch.testing.assert_close(each.weights, weights[: len(each.weights)])
            assert not weights[len(each.weights) :].any()
        texts.add(tuple(tokens))
        most = len(whole.tokens)  # the end falls on the limit, if there is one
        limited = OnlineReader(model)
        limited.push(frames[:17], most=most)
        limited.push(frames[17:], last=True, most=most)
        assert [each.token for each in limited.written] == [*whole.tokens, *[2] * whole.finished]
        assert limited.ended
    assert early > 10
    assert len(texts) > 2


def test_which_models_are_online():
    assert is_online(RNNSearch(**FRAMES, selection="monotonic", online=True))
    assert not is_online(RNNSearch(**FRAMES))
    assert not is_online(RNNSearch(**FRAMES, encoder="pyramidal"))
    with pytest.raises(ValueError, match="reads all of its source first: build it with online=True"):
        OnlineReader(RNNSearch(**FRAMES))
