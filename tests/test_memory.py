"""Whose memory it is: its writer and copies of it read it, a stranger of the same shape does not."""

import copy
import io
import pickle

import pytest
import torch

from saccade import Attention, MultiHead
from saccade.models import Transformer
from saccade.scores import AdditiveScore, ScaledDotScore

MAKE = {
    "attention": lambda: Attention(score=AdditiveScore(query_dim=6, key_dim=6, hidden_dim=5)),
    "heads": lambda: MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=2, query_dim=6),
}


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


def test_a_stranger_of_the_same_shape_is_refused(make):
    writer, stranger = make(), make()
    memory = writer.prepare(torch.randn(2, 7, 6))
    with pytest.raises(ValueError, match="memory was written by another attention"):
        stranger.read(torch.randn(2, 3, 6), memory)
    stranger.load_state_dict(writer.state_dict())  # equal parameters make no copy of it: they may change
    with pytest.raises(ValueError, match="memory was written by another attention"):
        stranger.read(torch.randn(2, 3, 6), memory)


@torch.no_grad()  # tensors with a history cannot be copied
def test_copies_read_it_and_so_do_copies_of_the_memory(make):
    writer = make()
    query, keys = torch.randn(2, 3, 6), torch.randn(2, 7, 6)
    memory = writer.prepare(keys)
    expected = writer.read(query, memory).context
    saved = io.BytesIO()
    torch.save(writer, saved)
    saved.seek(0)
    copies = [copy.deepcopy(writer), pickle.loads(pickle.dumps(writer)), torch.load(saved, weights_only=False)]
    for reader in (writer, *copies):
        for kept in (memory, copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
            torch.testing.assert_close(reader.read(query, kept).context, expected)


def test_what_is_reordered_or_grown_stays_its_own(make):
    writer, stranger = make(), make()
    query, keys = torch.randn(2, 3, 6), torch.randn(2, 7, 6)
    memory = writer.prepare(keys[:, :4]).append(keys[:, 4:])
    torch.testing.assert_close(writer.read(query, memory).context, writer(query, keys).context)
    rows = torch.tensor([1, 0, 1])
    moved = memory.index(rows)
    torch.testing.assert_close(writer.read(query[rows], moved).context, writer(query, keys).context[rows])
    for kept in (memory, moved):
        with pytest.raises(ValueError, match="another attention"):
            stranger.read(torch.randn(len(kept.values), 3, 6), kept)


def test_a_copy_with_other_parts_is_refused():
    writer = MAKE["attention"]()
    other = copy.deepcopy(writer)
    other.score = ScaledDotScore()
    with pytest.raises(ValueError, match="whose parts were replaced"):
        other.read(torch.randn(2, 3, 6), writer.prepare(torch.randn(2, 7, 6)))


def test_layers_do_not_read_each_others_memory():
    model = Transformer(source_vocab=5, target_vocab=5, dim=6, num_heads=2, encoder_layers=2)
    first, second = model.decoder.layers
    memory = first.cross_attention.prepare(torch.randn(1, 3, 6))
    with pytest.raises(ValueError, match="another attention"):
        second.cross_attention.read(torch.randn(1, 2, 6), memory)


def test_tokens_draw_no_random_numbers():
    before = torch.get_rng_state()
    tokens = {Attention(score=ScaledDotScore()).token for _ in range(5)}
    assert len(tokens) == 5
    assert torch.equal(torch.get_rng_state(), before)
