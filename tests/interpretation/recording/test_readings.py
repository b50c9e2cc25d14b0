"""Saccade's own attention."""

import pytest
import torch
from torch import nn

import saccade
from saccade import Attention, MultiHead, masks
from saccade.layers import LSTMNLayer
from saccade.models import RNNSearch, Transformer
from saccade.scores import AdditiveScore, CoverageScore, ScaledDotScore
from saccade.search import beam, greedy
from saccade.selections import BinaryConcrete, Hard, LinearChain, LocalP, Sigmoid, Softmax, Sparsemax

BATCH, QUERIES, KEYS, DIM = 2, 5, 23, 12


class Holder(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, *args, **kwargs):
        return self.attention(*args, **kwargs)


def parts():
    additive = AdditiveScore(query_dim=DIM, key_dim=DIM, hidden_dim=7)
    return {
        "fused": {"score": ScaledDotScore()},
        "plain": {"score": additive, "selection": Sparsemax()},
        "blocks": {"score": additive, "selection": Softmax(), "block_size": 3},
        "window": {"score": ScaledDotScore(), "selection": LocalP(query_dim=DIM, half_width=2)},
        "structured": {"score": ScaledDotScore(), "selection": LinearChain()},
        "history": {"score": CoverageScore(query_dim=DIM, key_dim=DIM, hidden_dim=7)},
        "dropout": {"score": ScaledDotScore(), "dropout": 0.5},
    }


@pytest.mark.parametrize("name", list(parts()))
@pytest.mark.parametrize("grad", [False, True])
def test_every_path(name, grad):
    model = Holder(Attention(**parts()[name]))
    query, keys = torch.randn(BATCH, QUERIES, DIM), torch.randn(BATCH, KEYS, DIM)
    mask = masks.from_lengths([KEYS, 19])
    with torch.set_grad_enabled(grad), saccade.record(model) as trace:
        reading = model(query, keys, mask=mask)
    assert list(trace) == ["attention"]
    assert trace["attention"].shape == (BATCH, 1, QUERIES, KEYS)
    torch.testing.assert_close(trace["attention"].weights[:, 0], reading.weights.detach(), rtol=0, atol=1e-6)


def test_heads_are_named_by_their_layer():
    model = Holder(MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=3, query_dim=DIM, num_key_heads=1))
    x = torch.randn(BATCH, QUERIES, DIM)
    with saccade.record(model) as trace:
        reading = model(x, mask=masks.causal())
    assert list(trace) == ["attention"]
    torch.testing.assert_close(trace["attention"].weights, reading.weights.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("selection", [Hard(), BinaryConcrete(straight_through=True)])
@pytest.mark.parametrize("training", [False, True])
def test_what_hard_attention_picked(selection, training):
    model = Holder(Attention(score=ScaledDotScore(), selection=selection)).train(training)
    query, keys = torch.randn(BATCH, QUERIES, DIM, requires_grad=True), torch.randn(BATCH, KEYS, DIM)
    with saccade.record(model) as trace:
        reading = model(query, keys)
    seen = trace["attention"]
    assert torch.equal(seen.picked[:, 0], reading.selection.draw)
    assert not seen.picked.requires_grad
    torch.testing.assert_close(seen.picked[:, 0] @ keys, reading.context.detach())
    torch.testing.assert_close(seen.weights[:, 0], reading.weights.detach())


def test_soft_attention_picks_nothing():
    model = Holder(Attention(score=ScaledDotScore(), selection=Sigmoid()))
    with saccade.record(model) as trace:
        model(torch.randn(BATCH, QUERIES, DIM), torch.randn(BATCH, KEYS, DIM))
    assert trace["attention"].picked is None


def test_changed_probabilities_change_what_is_picked():
    model = Holder(Attention(score=ScaledDotScore(), selection=BinaryConcrete())).eval()
    query, keys = torch.randn(BATCH, QUERIES, DIM), torch.randn(BATCH, KEYS, DIM)
    chosen = torch.arange(KEYS) % 3 == 1
    with saccade.record(model, change={"attention": lambda weights, mask, steps: chosen.expand_as(weights) * 0.7}):
        reading = model(query, keys)
    torch.testing.assert_close(reading.context, keys[:, chosen].sum(1, keepdim=True).expand(-1, QUERIES, -1))


def test_a_query_that_may_attend_nothing():
    model = Holder(Attention(score=ScaledDotScore()))
    with saccade.record(model) as trace:
        model(torch.randn(BATCH, QUERIES, DIM), torch.randn(BATCH, KEYS, DIM), mask=masks.from_lengths([KEYS, 0]))
    weights = trace["attention"].weights
    assert (weights[1] == 0).all()
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(1, QUERIES))


@pytest.mark.parametrize("search", [greedy, beam])
@pytest.mark.parametrize("recurrent", [True, False])
def test_search_step_by_step(search, recurrent):
    if recurrent:
        model = RNNSearch(source_vocab=17, target_vocab=19, embedding_dim=5, hidden_dim=7).eval()
        name = "decoder.attention"
    else:
        model = Transformer(source_vocab=17, target_vocab=19, dim=8, num_heads=2, encoder_layers=1).eval()
        name = "decoder.layers.0.cross_attention"
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    source, mask = torch.randint(3, 17, (5, 7)), torch.arange(7) < torch.tensor([7, 3, 5, 6, 2])[:, None]
    with torch.no_grad(), saccade.record(model, keep=[name, "decoder.layers.*"]) as trace:
        found = search(model, model.encode(source, mask), max_length=[3, 9, 5, 11, 2])
    hypotheses = found if search is greedy else [best for best, *_ in found]
    joined = trace.joined(name, rows=[hypothesis.rows for hypothesis in hypotheses])
    assert joined.shape[2] == max(len(hypothesis.rows) for hypothesis in hypotheses) > 2
    for hypothesis, weights in zip(hypotheses, joined.mean(1), strict=True):
        steps = len(hypothesis.rows)
        torch.testing.assert_close(weights[:steps], hypothesis.weights, rtol=0, atol=1e-5)
        assert (weights[steps:] == 0).all()


def test_the_kernel_of_an_lstmn_is_one_call() -> None:
    layer = LSTMNLayer(input_dim=4, hidden_dim=5)
    inputs, mask = torch.randn(2, 7, 4), torch.ones(2, 7, dtype=torch.bool)
    with torch.no_grad(), saccade.record(layer) as trace:
        layer(inputs, mask)
    assert [call.weights.shape for call in trace.calls] == [(2, 1, 7, 7)]
    assert trace.missing == []
    earlier = trace.calls[0].weights[:, 0].sum(-1)
    torch.testing.assert_close(earlier, torch.ones(2, 7).index_fill(1, torch.tensor([0]), 0.0))
