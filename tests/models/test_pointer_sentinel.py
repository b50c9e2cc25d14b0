"""The pointer sentinel against its equations: mixture, window, auxiliary loss, what `record` sees."""

import math

import pytest
import torch

from saccade import record
from saccade.models import PointerSentinel

VOCAB, WINDOW = 11, 3


def make(**options):
    torch.manual_seed(2)
    return PointerSentinel(vocab=VOCAB, dim=5, num_layers=1, window=WINDOW, **options).eval()


def by_the_book(model, tokens):
    """For each position of one text: p of each word, the weights of the last words, and that of the sentinel."""
    ids = torch.tensor([tokens])
    states = model.states_of(model(ids, ids > 0))[0]
    found = []
    for t in range(len(tokens)):
        query = torch.tanh(model.query_proj.weight @ states[t] + model.query_proj.bias)
        places = list(range(max(0, t - WINDOW + 1), t + 1))
        scores = [math.exp(query @ states[i]) for i in places] + [math.exp(query @ model.sentinel.sentinel)]
        weights = [score / sum(scores) for score in scores]
        chances = weights[-1] * (model.embedding.weight @ states[t]).softmax(-1)
        for place, weight in zip(places, weights, strict=False):
            chances[tokens[place]] += weight
        found.append((chances, dict(zip(places, weights, strict=False)), weights[-1]))
    return found


TOKENS = [4, 7, 4, 9, 4, 10, 7, 7]


@torch.no_grad()
def test_the_mixture_is_the_papers() -> None:
    model = make()
    ids = torch.tensor([TOKENS])
    found = model.head.logits(model(ids, ids > 0))[0].exp()
    for own, (chances, _, _) in zip(found, by_the_book(model, TOKENS), strict=True):
        torch.testing.assert_close(own, chances)
        assert float(own.sum()) == pytest.approx(1.0, abs=1e-5)


@torch.no_grad()
def test_the_loss_and_its_auxiliary_part_are_the_papers() -> None:
    model = make(auxiliary=0.5)
    ids, targets = torch.tensor([TOKENS[:-1]]), torch.tensor(TOKENS[1:])
    said = model(ids, ids > 0)[0]
    book = by_the_book(model, TOKENS[:-1])
    plain = -sum(math.log(chances[y]) for (chances, _, _), y in zip(book, TOKENS[1:], strict=True))
    assert float(model.head.loss(said, targets).total) == pytest.approx(plain, rel=1e-5)
    right = [
        vocabulary + sum(weight for place, weight in weights.items() if TOKENS[place] == y)
        for (_, weights, vocabulary), y in zip(book, TOKENS[1:], strict=True)
    ]
    assert float(model.penalty(said, targets)) == pytest.approx(-0.5 * sum(map(math.log, right)), rel=1e-5)
    assert make().penalty(said, targets) is None


@torch.no_grad()
def test_record_sees_what_is_pointed_at() -> None:
    model = make()
    ids = torch.tensor([TOKENS])
    with record(model) as trace:
        model(ids, ids > 0)
    weights = trace["pointer"].weights[0, 0]
    for row, (_, book, vocabulary) in zip(weights, by_the_book(model, TOKENS), strict=True):
        assert float(row.sum()) == pytest.approx(1.0 - vocabulary, abs=1e-5)
        for place, weight in enumerate(row.tolist()):
            assert weight == pytest.approx(book.get(place, 0.0), abs=1e-5)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="auxiliary must be 0 or more"):
        make(auxiliary=-1.0)
    with pytest.raises(ValueError, match="window"):
        PointerSentinel(vocab=VOCAB, window=0)
