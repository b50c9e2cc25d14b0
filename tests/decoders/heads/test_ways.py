"""Mixtures of ways to say a word, against the equations of the papers as loops over words and entries."""

import math

import pytest
import torch

from saccade.decoders.heads import Bias, Entries, Gate, LinearHead, OutputHead, Said, Sentinel, SharedSoftmax, WaysHead

VOCAB, DIM, CUE, ROWS, KEYS, EXTRA = 11, 5, 3, 7, 6, 2

BLENDS = {
    "shared": SharedSoftmax,
    "gate": lambda: Gate(cue_dim=CUE),
    "interpolation": lambda: Gate(cue_dim=0),
    "sentinel": lambda: Sentinel(cue_dim=CUE),
    "bias": lambda: Bias(epsilon=0.01),
}


def made(name):
    torch.manual_seed(1)
    head = WaysHead(generate=LinearHead(input_dim=DIM, vocab_size=VOCAB), blend=BLENDS[name](), vocab_size=VOCAB)
    head.double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    scores = torch.randn(ROWS, KEYS, dtype=torch.double)
    if name == "bias":
        scores = scores.log_softmax(-1)  # the log-weights of a lexicon
    scores[:, -1] = -math.inf  # padding
    # Words repeat within a row, and only copying reaches those from VOCAB on.
    words = torch.randint(0, VOCAB + (0 if name == "bias" else EXTRA), (ROWS, KEYS))
    words[:, 1] = words[:, 0]
    said = Said(
        torch.randn(ROWS, DIM, dtype=torch.double),
        {"copy": Entries(scores, words)},
        torch.randn(ROWS, CUE, dtype=torch.double),
        extra=EXTRA,
    )
    return head, said


def oracle(name, head, said, row):
    """The probability of each word of the extended vocabulary, and of that what is copied."""
    logits = head.generate.logits(said.features[row]).tolist()
    scores, words = said.entries["copy"].scores[row].tolist(), said.entries["copy"].words[row].tolist()
    size = VOCAB + EXTRA
    mass = [sum(math.exp(s) for s, w in zip(scores, words, strict=True) if w == word) for word in range(size)]
    vocab = [math.exp(x) for x in logits] + [0.0] * EXTRA
    all_words, all_mass = sum(vocab), sum(mass)
    if name == "shared":
        return [(v + m) / (all_words + all_mass) for v, m in zip(vocab, mass, strict=True)]
    if name == "bias":
        raised = [v * (m + 0.01) for v, m in zip(vocab, mass, strict=True)]
        return [each / sum(raised) for each in raised]
    if name == "sentinel":
        sentinel = math.exp((said.cue[row] @ head.blend.sentinel).item())
        gate = sentinel / (sentinel + all_mass)
        return [gate * v / all_words + m / (sentinel + all_mass) for v, m in zip(vocab, mass, strict=True)]
    x = (head.blend.proj(said.cue[row]) if name == "gate" else head.blend.constant).item()
    gate = 1 / (1 + math.exp(-x))
    return [gate * v / all_words + (1 - gate) * m / all_mass for v, m in zip(vocab, mass, strict=True)]


@pytest.mark.parametrize("name", BLENDS)
def test_the_mixture_is_that_of_the_equations(name):
    head, said = made(name)
    found = head.logits(said).exp()
    expected = torch.tensor([oracle(name, head, said, row) for row in range(ROWS)], dtype=torch.double)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(-1), torch.ones(ROWS, dtype=torch.double))


@pytest.mark.parametrize("name", BLENDS)
def test_the_loss_is_that_of_the_full_distribution(name):
    head, said = made(name)
    said.features.requires_grad_()
    said.entries["copy"].scores.requires_grad_()
    full = head.logits(said).detach()
    targets = full.argmax(-1)
    targets[::2] = said.entries["copy"].words[::2, 0]  # every other one is copied, perhaps wrongly
    inputs = [said.features, said.entries["copy"].scores, *head.parameters()]
    total, right, plain = head.loss(said, targets)
    expected = -head.logits(said).gather(-1, targets[:, None]).sum()
    torch.testing.assert_close(total, expected)
    assert float(plain) == pytest.approx(float(total))
    assert int(right) == int((full.argmax(-1) == targets).sum())
    ours, theirs = torch.autograd.grad(total, inputs), torch.autograd.grad(expected, inputs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
        assert one.isfinite().all()


def test_smoothing_spreads_over_what_is_generated():
    head, said = made("gate")
    targets = torch.full((ROWS,), 4)
    gate = torch.nn.functional.logsigmoid(head.blend.proj(said.cue))
    generated = gate + head.generate.logits(said.features).log_softmax(-1)
    plain = head.loss(said, targets).total
    found = head.loss(said, targets, smoothing=0.3, first=2)
    torch.testing.assert_close(found.total, 0.7 * plain - 0.3 * generated[:, 2:].mean(-1).sum())
    torch.testing.assert_close(found.plain, plain.detach())


@pytest.mark.parametrize("name", BLENDS)
def test_shares_of_a_word_are_those_of_its_ways(name):
    head, said = made(name)
    tokens = said.entries["copy"].words[:, 0]
    found = head.origins(said, tokens)
    assert found.ways == ("generate", "copy")
    torch.testing.assert_close(found.shares.sum(-1), torch.ones(ROWS, dtype=torch.double))
    scores, words = said.entries["copy"].scores, said.entries["copy"].words
    for row, token in enumerate(tokens.tolist()):
        same = [place for place in range(KEYS) if int(words[row, place]) == token]
        assert int(found.places[row, 1]) == max(same, key=lambda place: float(scores[row, place]))
        if token >= VOCAB:
            assert float(found.shares[row, 0]) == 0.0
    assert (found.places[:, 0] == -1).all()


@pytest.mark.parametrize("name", BLENDS)
def test_without_entries_everything_is_generated(name):
    head, said = made(name)
    scores = torch.full((ROWS, KEYS), -math.inf, dtype=torch.double, requires_grad=True)
    said.entries["copy"] = said.entries["copy"]._replace(scores=scores)
    expected = head.generate.logits(said.features).log_softmax(-1)
    found = head.logits(said)
    torch.testing.assert_close(found[:, :VOCAB], expected)
    assert (found[:, VOCAB:] == -math.inf).all()
    total = head.loss(said, torch.full((ROWS,), 5)).total
    torch.testing.assert_close(total, -expected[:, 5].sum())
    total.backward()
    assert scores.grad is None or (scores.grad == 0).all()


def test_indexing_by_rows_changes_no_number():
    head, said = made("gate")
    rows = torch.tensor([True, False, True, True, False, False, True])
    torch.testing.assert_close(head.logits(said[rows]), head.logits(said)[rows])


def test_the_best_words_are_those_of_the_full_distribution():
    head, said = made("shared")
    full = head.logits(said).index_fill(1, torch.tensor([0, 1]), -math.inf).float().topk(4)
    values, ids = head.best(said, 4, torch.tensor([0, 1]))
    torch.testing.assert_close(values.float(), full.values)
    assert (ids == full.indices).all()


def test_words_outside_the_vocabulary_are_unknown_to_an_embedding():
    head, _ = made("shared")
    assert head.known(torch.tensor([0, VOCAB - 1, VOCAB, VOCAB + 1])).tolist() == [0, VOCAB - 1, 3, 3]


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_chunks_change_no_number(name, smoothing, monkeypatch):
    """Rows are taken a few at a time, unless the vocabulary's logits come from another head."""
    monkeypatch.setattr("saccade.kernels.picked_logits.CHUNK", 2 * VOCAB)
    head, said = made(name)
    said.features.requires_grad_()
    said.entries["copy"].scores.requires_grad_()
    said.cue.requires_grad_()
    targets = said.entries["copy"].words[:, 0]
    inputs = [said.features, said.entries["copy"].scores, said.cue, *head.parameters()]
    found = head.loss(said, targets, smoothing=smoothing, first=2)
    whole = WaysHead(generate=Other(head.generate), blend=head.blend, vocab_size=VOCAB)
    expected = whole.loss(said, targets, smoothing=smoothing, first=2)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    ours = torch.autograd.grad(2 * found.total, inputs)
    theirs = torch.autograd.grad(2 * expected.total, inputs, allow_unused=True)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other)  # not every blend has a cue
    with torch.no_grad():
        torch.testing.assert_close(head.loss(said, targets).plain, expected.plain)


class Other(OutputHead):
    """A head that is not a `LinearHead`."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def logits(self, features):
        return self.inner.logits(features)
