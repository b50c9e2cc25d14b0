"""The kernel for all layers of a Transformer decoder computes what the plain steps compute."""

import copy
import math
from itertools import chain

import pytest
import torch

import saccade
from saccade.decoders.fused import FusedState
from saccade.decoders.transformer import TransformerState
from saccade.kernels import native
from saccade.kernels.modes import plainly
from saccade.models import models
from saccade.scores import ScaledDotScore
from saccade.search import beam, greedy

pytestmark = pytest.mark.skipif(native.library() is None, reason="needs a C compiler")

SIZES = {"source_vocab": 23, "target_vocab": 37, "num_heads": 3, "encoder_layers": 2}


def made(**changes):
    torch.manual_seed(1)
    return models.create("transformer", **{"dim": 21, **SIZES, **changes}).eval()


def encoded(model, lengths=(5, 7, 2)):
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    source = torch.randint(3, 23, mask.shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return model.encode(source, mask)


@torch.no_grad()
def walk(model, source, steps=6):
    """Logits and weights of steps in which hypotheses multiply, change places and leave."""
    found, state = [], model.begin(source)
    kind = type(state)
    tokens = torch.full((len(source.mask),), 1)
    for number in range(steps):
        given = model.step(tokens, state)
        assert type(given.state) is kind
        found += [given.logits, given.weights]
        tokens = given.logits.argmax(dim=1)
        if number == 0:  # three hypotheses of each sentence
            rows = torch.arange(len(tokens)).repeat_interleave(3)
            state = model.select(given.state, rows)
        elif number == 3:  # the second sentence leaves
            rows = torch.tensor([0, 2, 2, 6, 7, 6])
            state = model.select(given.state, rows)
        else:
            rows = torch.arange(len(tokens)).view(-1, 3).flip(1).flatten()
            state = model.reorder(given.state, rows)
        tokens = tokens[rows]
    return found, kind


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post", "activation": "gelu", "tied": "none"},
        {"dim": 96, "feed_forward_dim": 67, "score": "dot", "positions": "learned"},
    ],
)
def test_plain_steps(changes):
    model = made(**changes)
    source = encoded(model)
    got, kind = walk(model, source)
    assert kind is FusedState
    with plainly():
        wanted, kind = walk(model, source)
    assert kind is TransformerState
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_searches_find_the_same():
    model = made()
    source = encoded(model, (5, 7, 2, 3, 11))
    options = {"max_length": torch.tensor([3, 9, 5, 11, 7])}
    got = beam(model, source, size=3, nbest=2, **options), greedy(model, source, **options)
    with plainly():
        wanted = beam(model, source, size=3, nbest=2, **options), greedy(model, source, **options)
    found, expected = ([*chain(*several), *single] for several, single in (got, wanted))
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.tokens, ours.finished, ours.rows) == (theirs.tokens, theirs.finished, theirs.rows)
        assert math.isclose(ours.log_prob, theirs.log_prob, rel_tol=1e-4)
        torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-4, atol=1e-5)


def test_more_rows_than_a_block():
    model = made()
    source = encoded(model, (5, 7, 2) * 67)
    torch.set_num_threads(2)
    try:
        got = beam(model, source, max_length=4, size=2)
    finally:
        torch.set_num_threads(1)
    with plainly():
        wanted = beam(model, source, max_length=4, size=2)
    assert [[each.tokens for each in found] for found in got] == [[each.tokens for each in found] for found in wanted]


@pytest.mark.parametrize(
    "changes",
    [
        {"score": "bilinear"},
        {"selection": "sparsemax"},
        {"positions": "rotary", "dim": 24},
        {"positions": "alibi"},
        {"cross_selection": "entmax15"},
    ],
)
def test_other_layers_take_plain_steps(changes):
    model = made(**changes)
    with torch.no_grad():
        assert type(model.begin(encoded(model))) is TransformerState


class Halved(ScaledDotScore):
    """Another factor is still an inner product."""

    def scale(self, dim):
        return super().scale(dim) / 2


class Absolute(ScaledDotScore):
    """Computes something else."""

    def compare(self, query, prepared, state=None):
        return super().compare(query, prepared, state).abs()


def with_scores(kind):
    model = made()
    for layer in model.decoder.layers:
        layer.self_attention.attention.score, layer.cross_attention.attention.score = kind(), kind()
    return model.eval()


def test_a_score_of_ones_own_takes_the_kernel_if_it_is_an_inner_product():
    model = with_scores(Halved)
    got, kind = walk(model, encoded(model))
    assert kind is FusedState
    with plainly():
        wanted, _ = walk(model, encoded(model))
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    usual, _ = walk(made(), encoded(model))
    assert not torch.allclose(usual[0], got[0])
    other = with_scores(Absolute)
    assert walk(other, encoded(other))[1] is TransformerState


def test_training_and_gradients_take_plain_steps():
    model = made()
    source = encoded(model)
    assert type(model.begin(source)) is TransformerState
    with torch.no_grad():
        assert type(model.begin(source)) is FusedState
        assert type(made().double().begin(encoded(made().double()))) is TransformerState
        assert type(model.train().begin(source)) is TransformerState
        model.eval().decoder.layers[1].around_cross.train()  # dropout in one part alone
        assert type(model.begin(source)) is TransformerState


def test_hooks_are_called():
    model, seen = made(), []
    model.decoder.layers[1].feed_forward.register_forward_hook(lambda *_: seen.append(1))
    greedy(model, encoded(model), max_length=2)
    assert seen
    model, seen = made(), []
    model.decoder.final_norm.register_forward_hook(lambda *_: seen.append(1))
    greedy(model, encoded(model), max_length=2)
    assert seen


def test_recordings_see_every_layer():
    model = made()
    source = encoded(model)
    with torch.no_grad():
        state = model.begin(source)
        state = model.step(torch.tensor([1, 1, 1]), state).state
        with saccade.record(model) as trace:  # begun before: the past becomes memories
            given = model.step(torch.tensor([4, 5, 6]), state)
        again = model.step(torch.tensor([4, 5, 6]), state)
    assert type(given.state) is TransformerState
    assert len(trace) == 4
    torch.testing.assert_close(given.logits, again.logits, rtol=1e-4, atol=1e-5)


def test_changed_parameters_and_copies():
    model = made()
    source = encoded(model)
    first, _ = walk(model, source)
    copied = copy.deepcopy(model)
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.hidden_proj.weight.mul_(3)
        model.decoder.layers[1].self_attention.key_proj.weight = torch.nn.Parameter(torch.randn(21, 21))
    changed, _ = walk(model, source)
    same, _ = walk(copied, source)
    assert not torch.allclose(first[2], changed[2])
    torch.testing.assert_close(same, first)
    with plainly():
        wanted, _ = walk(model, source)
    for one, other in zip(changed, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_numbers_that_are_not_finite_are_refused_by_the_plain_step():
    model = made()
    source = encoded(model)
    with torch.no_grad():
        model.decoder.layers[0].self_attention.value_proj.weight.fill_(math.nan)
        with pytest.raises(ValueError, match="scores must be finite"):
            model.step(torch.tensor([1, 1, 1]), model.begin(source))


def test_a_source_without_positions_reads_zeros():
    model = made()
    source = encoded(model, (5, 0, 2))
    got, _ = walk(model, source)
    with plainly():
        wanted, _ = walk(model, source)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
