"""Every head: `loss` is the cross-entropy of `logits`, also in its gradients."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from saccade.decoders.heads import LinearHead, LowRankHead, MixtureHead, OutputHead
from saccade.layers import TokenEmbedding
from saccade.models import EncoderDecoder, Transformer, models

VOCAB, DIM, ROWS, SOURCES = 11, 5, 7, 3


class Squared(LinearHead):
    """A user's own head, whose loss no longer follows from its weights."""

    def logits(self, features):
        return super().logits(features).square()

    loss = OutputHead.loss


HEADS = {
    "linear": lambda: LinearHead(input_dim=DIM, vocab_size=VOCAB),
    "tied": lambda: LinearHead(
        input_dim=DIM, vocab_size=VOCAB, tied_to=TokenEmbedding(vocab_size=VOCAB, dim=DIM).weight
    ),
    "low_rank": lambda: LowRankHead(input_dim=DIM, vocab_size=VOCAB, rank=2),
    "mixture": lambda: MixtureHead(input_dim=DIM - 1, vocab_size=VOCAB),
    "own": lambda: Squared(input_dim=DIM, vocab_size=VOCAB),
}


def features_of(name):
    if name == "mixture":
        return torch.cat([torch.randn(ROWS, SOURCES, DIM - 1), torch.randn(ROWS, SOURCES, 1).log_softmax(1)], dim=-1)
    return torch.randn(ROWS, DIM)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("name", HEADS)
def test_loss_is_the_cross_entropy_of_the_logits(name, smoothing):
    torch.manual_seed(0)
    head, features = HEADS[name](), features_of(name).requires_grad_()
    targets = torch.randint(2, VOCAB, (ROWS,))
    logits = head.logits(features)
    assert logits.shape == (ROWS, VOCAB)
    wanted = torch.zeros(ROWS, VOCAB)
    wanted[:, 2:] = smoothing / (VOCAB - 2)
    wanted[range(ROWS), targets] += 1 - smoothing
    expected = F.cross_entropy(logits, wanted, reduction="sum")
    total, right, plain = head.loss(features, targets, smoothing=smoothing, first=2)
    torch.testing.assert_close(plain, F.cross_entropy(logits, targets, reduction="sum"))
    torch.testing.assert_close(total, expected)
    assert int(right) == int((logits.argmax(-1) == targets).sum())
    inputs = [features, *head.parameters()]
    for ours, theirs in zip(torch.autograd.grad(total, inputs), torch.autograd.grad(expected, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_a_mixture_is_a_distribution():
    torch.manual_seed(0)
    logits = HEADS["mixture"]().logits(features_of("mixture"))
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(ROWS))


def test_tied_weights_are_one_parameter_also_in_copies_and_after_moves():
    model = Transformer(source_vocab=VOCAB, target_vocab=VOCAB, dim=8, num_heads=2, encoder_layers=1, tied="all")
    for one in (model, copy.deepcopy(model), copy.deepcopy(model).double()):
        assert one.head.proj.weight is one.decoder.embedding.weight is one.encoder.embedding.weight
        assert one.head.proj.bias is None
    assert isinstance(Transformer(source_vocab=3, target_vocab=4, dim=4, tied="none").head.proj.weight, nn.Parameter)


def test_tying_draws_no_random_numbers():
    weight = TokenEmbedding(vocab_size=VOCAB, dim=DIM).weight
    before = torch.get_rng_state()
    LinearHead(input_dim=DIM, vocab_size=VOCAB, tied_to=weight)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ValueError, match=r"tied_to must be \(11, 4\), got \(11, 5\)"):
        LinearHead(input_dim=4, vocab_size=VOCAB, tied_to=weight)


@pytest.mark.parametrize("name", [name for name, kind in models.items() if issubclass(kind, EncoderDecoder)])
def test_every_encoder_decoder_has_one(name):
    source = {"source_dim": 12} if name == "show_attend_tell" else {"source_vocab": 7}  # it reads pictures
    vocab = 7 if name == "convolutional_attention" else VOCAB  # its two sides share one
    model = models.create(name, **source, target_vocab=vocab)
    assert isinstance(model.head, OutputHead)
    assert model.head is model.decoder.head
