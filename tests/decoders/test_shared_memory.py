"""Hypotheses of one sentence share its memory, and nothing changes by it."""

import pytest
import torch

from saccade.distributions import Categorical
from saccade.models import models
from saccade.selections import Selection

SENTENCES, LENGTH, VOCAB = 3, 5, 17
SIZES = {"source_vocab": VOCAB, "target_vocab": VOCAB}
MODELS = {
    "rnnsearch": {"embedding_dim": 7, "hidden_dim": 11},
    "rnnsearch sparse": {"embedding_dim": 7, "hidden_dim": 11, "selection": "sparsemax"},
    "transformer": {"dim": 8, "num_heads": 2, "encoder_layers": 2, "feed_forward_dim": 13},
    "transformer additive": {"dim": 8, "num_heads": 2, "encoder_layers": 1, "score": "additive"},
}


@pytest.fixture(params=MODELS)
def model(request):
    return models.create(request.param.split()[0], **SIZES, **MODELS[request.param]).double().eval()


def memories(state):
    memory = state.memory[0] if isinstance(state.memory, tuple) else state.memory
    return len(memory.values)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([0, 0, 1, 1, 2, 2], 3),  # two hypotheses of each sentence
        ([1, 1, 1, 1, 2, 2, 2, 2], 2),  # four, and the first sentence has left
        ([2, 2, 0, 1], 4),  # not as many of each: everyone has a memory
    ],
)
@torch.no_grad()
def test_as_if_each_had_its_own(model, rows, kept):
    source = torch.randint(3, VOCAB, (SENTENCES, LENGTH))
    mask = torch.arange(LENGTH) < torch.tensor([[5], [3], [4]])
    chosen = torch.tensor(rows)
    tokens = torch.randint(3, VOCAB, (3, len(rows)))
    encoded = model.encode(source, mask)
    state = model.select(model.step(torch.ones(SENTENCES, dtype=torch.long), model.begin(encoded)).state, chosen)
    own = model.begin(model.encode(source[chosen], mask[chosen]))
    own = model.step(torch.ones(len(rows), dtype=torch.long), own).state
    assert memories(state) == kept
    # Within a sentence the two of its first hypotheses change places, as in a beam search.
    crossed = torch.arange(len(rows))
    crossed[:2] = torch.tensor([1, 0])
    for token in tokens:
        ours, theirs = model.step(token, state), model.step(token, own)
        torch.testing.assert_close(ours.logits, theirs.logits)
        torch.testing.assert_close(ours.weights, theirs.weights)
        state, own = model.reorder(ours.state, crossed), model.select(theirs.state, crossed)
    last = torch.tensor([len(rows) - 1])
    ours, theirs = model.select(state, last), model.select(own, last)
    torch.testing.assert_close(model.step(tokens[0][last], ours).logits, model.step(tokens[0][last], theirs).logits)


def test_attention_that_remembers_does_not_share():
    model = models.create("rnnsearch", **SIZES, embedding_dim=7, hidden_dim=11, selection="monotonic").eval()
    assert not model.decoder.shares_memory()
    state = model.begin(model.encode(torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool)))
    assert memories(model.select(state, torch.tensor([0, 0, 1, 1]))) == 4


class Squared(Selection):
    """A user's own selection, which no list in the library names."""

    def select(self, scores, mask, *, query, prepared, state):
        weights = scores.square().masked_fill(~mask, 0)
        return Categorical(weights / weights.sum(-1, keepdim=True).clamp(min=1e-9))


def test_a_selection_of_the_user_shares_too():
    for name in ("rnnsearch", "transformer"):
        model = models.create(name, **SIZES, selection=Squared()).double().eval()
        assert model.decoder.shares_memory()
        test_as_if_each_had_its_own(model, [0, 0, 1, 1, 2, 2], 3)
