"""Small models to search in, and the plain way to score what was found."""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.decoders import Step


class EncoderOutput(NamedTuple):
    states: Tensor
    mask: Tensor
    summary: None = None


class Table:
    """The next token depends on the sentence, the step and the previous token, as random tables have it."""

    def __init__(self, *, batch, vocab, keys=None, steps=9, seed=0, sharpness=1.0):
        generator = torch.Generator().manual_seed(seed)
        self.vocab = vocab
        self.logits = torch.randn(batch, steps, vocab, vocab, generator=generator) * sharpness
        self.weights = None
        mask = torch.ones(batch, keys or 3, dtype=torch.bool)
        if keys:
            lengths = torch.randint(1, keys + 1, (batch,), generator=generator)
            mask = torch.arange(keys) < lengths[:, None]
            scores = torch.randn(batch, steps, vocab, keys, generator=generator) * 2
            self.weights = scores.masked_fill(~mask[:, None, None], float("-inf")).softmax(dim=-1)
        self.encoded = EncoderOutput(torch.zeros(batch, keys or 3, 1), mask)

    def begin(self, encoded):
        return encoded.states[:, 0, 0].long() if encoded is not self.encoded else torch.arange(len(encoded.mask)), 0

    def step(self, tokens, state):
        sentences, step = state
        looked = None if self.weights is None else self.weights[sentences, step, tokens]
        return Step(self.logits[sentences, step, tokens], (sentences, step + 1), looked)

    def select(self, state, rows):
        return state[0][rows], state[1]

    def reorder(self, state, rows):
        assert torch.equal(state[0][rows], state[0])  # rows stay within their sentence
        return state

    def alone(self, sentence):
        """What the model begins with for one sentence of the batch."""
        return EncoderOutput(torch.full((1, 1, 1), float(sentence)), self.encoded.mask[sentence : sentence + 1])


class Recurrent(nn.Module):
    """A tiny recurrent decoder with attention to the encoded states, which `reorder` leaves where they are."""

    def __init__(self, *, vocab=11, dim=5, batch=7, keys=6, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.out = nn.Linear(2 * dim, vocab)
        nn.init.normal_(self.out.weight, std=1.5)
        nn.init.constant_(self.out.bias[2:3], 1.0)  # some sentences end early
        lengths = torch.randint(1, keys + 1, (batch,))
        self.encoded = EncoderOutput(torch.randn(batch, keys, dim), torch.arange(keys) < lengths[:, None])

    def begin(self, encoded):
        hidden = (encoded.states * encoded.mask[..., None]).sum(dim=1)
        return encoded.states, encoded.mask, hidden, torch.zeros_like(hidden)

    def step(self, tokens, state):
        states, mask, hidden, context = state
        hidden = self.cell(torch.cat([self.embed(tokens), context], dim=-1), hidden)
        scores = (states @ hidden[:, :, None]).squeeze(-1).masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        context = (weights[:, None] @ states).squeeze(1)
        logits = self.out(torch.cat([hidden, context], dim=-1))
        return Step(logits, (states, mask, hidden, context), weights)

    def select(self, state, rows):
        return tuple(part[rows] for part in state)

    def reorder(self, state, rows):
        states, mask, hidden, context = state
        return states, mask, hidden[rows], context[rows]

    def alone(self, sentence):
        keys = int(self.encoded.mask[sentence].sum())  # without its padding
        return EncoderOutput(self.encoded.states[sentence : sentence + 1, :keys], torch.ones(1, keys, dtype=torch.bool))


@torch.no_grad()
def rescore(model, encoded, tokens, *, end=True):
    """The log-probability and the weights of given tokens, step by step."""
    state = model.begin(encoded)
    total, looked = 0.0, []
    for previous, token in itertools.pairwise([1, *tokens, *([2] if end else [])]):
        step = model.step(torch.tensor([previous]), state)
        total += float(step.logits.log_softmax(dim=-1)[0, token])
        looked.append(step.weights)
        state = step.state
    return total, None if not looked or looked[0] is None else torch.cat(looked)


def score(log_prob, steps, alpha, weights=None, mask=None, beta=0.0):
    """Wu's equation 14, written out."""
    found = log_prob / ((5 + steps) / 6) ** alpha
    if beta:
        for key in range(len(mask)):
            if mask[key]:
                covered = min(float(weights[:, key].sum()), 1.0)
                found += beta * float(torch.tensor(max(covered, 1e-6)).log())
    return found


def sequences(vocab, longest):
    """All token sequences up to a length, without special ids."""
    for length in range(longest + 1):
        yield from map(list, itertools.product(range(3, vocab), repeat=length))
