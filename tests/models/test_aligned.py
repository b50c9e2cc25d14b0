"""Models that sum over alignments: what they train is what they write with, and online ones read no farther."""

import itertools

import pytest
import torch

from saccade.decoders import aligned
from saccade.models import HardMonotonic, SegmentToSegment
from saccade.search import beam, greedy
from tests.models.family import SMALL

KINDS = {
    "exact_hard": lambda: HardMonotonic(**SMALL, order=None),
    "order_0": lambda: HardMonotonic(**SMALL, order=0),
    "order_1": lambda: HardMonotonic(**SMALL, order=1, width=3),
    "ssnt": lambda: SegmentToSegment(**SMALL, online=False),
}
ONLINE = {
    "order_1": lambda: HardMonotonic(**SMALL, order=1, width=3, online=True),
    "ssnt": lambda: SegmentToSegment(**SMALL, online=True),
}
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(5) < LENGTHS[:, None]
STEPS = torch.tensor([4, 2, 3])
REAL = torch.arange(4) < STEPS[:, None]


def build(kind, dtype=torch.float64, spread=0.5):
    torch.manual_seed(0)
    model = kind().to(dtype).eval()
    for parameter in model.parameters():
        parameter.data += spread * torch.randn_like(parameter)
    return model


def batch():
    torch.manual_seed(1)
    source, target = torch.randint(4, 13, (3, 5)), torch.randint(2, 11, (3, 4))
    return source, target, torch.cat([torch.ones_like(target[:, :1]), target[:, :-1]], dim=1)


@pytest.mark.parametrize("name", KINDS)
def test_the_likelihood_is_that_of_all_steps(name):
    model = build(KINDS[name])
    source, target, before = batch()
    with torch.no_grad():
        likelihood = model.alignment(source, MASK, before, target, REAL).log_likelihood
        state, total = model.begin(model.encode(source, MASK)), 0.0
        for t in range(4):
            step = model.step(before[:, t], state)
            state = step.state
            torch.testing.assert_close(step.logits.logsumexp(-1), torch.zeros(3, dtype=torch.float64))
            total = total + torch.where(REAL[:, t], step.logits.gather(1, target[:, t, None]).squeeze(1), 0.0)
    torch.testing.assert_close(likelihood.double(), total, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_the_likelihood_and_the_posterior_are_those_of_the_enumeration(name):
    """Every alignment, weighed by the readout and the transitions of a loop."""
    model = build(KINDS[name])
    source, target, before = (tensor[:1] for tensor in batch())
    with torch.no_grad():
        alignment = model.alignment(source, MASK[:1], before, target, REAL[:1])
        decoder = model.decoder
        state, query = decoder._states(model.encode(source, MASK[:1]), before)
        words = decoder.head.proj(decoder._readout(query, state.memory)).log_softmax(-1)[0]
        scores = decoder.transitions.scores(query, state.memory)[0]

    def way(k, s, t):
        """p(a_t = s | a_{t-1} = k)."""
        if name == "exact_hard":
            return scores[t].softmax(0)[s]
        if s < k:
            return torch.zeros((), dtype=torch.float64)
        if name == "order_0":
            return scores[t, k:].softmax(0)[s - k]
        if name == "order_1":
            # The first word moves on by one or two from before the first source.
            allowed = (scores[t, k, : min(3, 5 - k)] if t else scores[0, 0, 1:]).softmax(0)
            return allowed[s - k] if s - k < len(allowed) else torch.zeros((), dtype=torch.float64)
        emit = [scores[t, j].sigmoid() if j < 4 else torch.ones((), dtype=torch.float64) for j in range(5)]
        shifts = [1 - emit[j] for j in range(k, s)]
        return torch.stack([*shifts, emit[s]]).prod()

    total, posterior = torch.zeros((), dtype=torch.float64), torch.zeros(4, 5, dtype=torch.float64)
    for path in itertools.product(range(5), repeat=4):
        weight = torch.ones((), dtype=torch.float64)
        for t, (k, s) in enumerate(itertools.pairwise((0, *path))):
            weight = weight * way(k, s, t) * words[t, s, target[0, t]].exp()
        total = total + weight
        posterior[torch.arange(4), torch.tensor(path)] += weight
    torch.testing.assert_close(alignment.log_likelihood[0].double(), total.log(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alignment.marginals[0].double(), posterior / total, atol=1e-5, rtol=1e-4)


def kept_of_all_words(model, source, target, before):
    """The loss, and the most numbers that its gradient keeps of one tensor with an axis of words."""
    sizes = [0]

    def keep(tensor):
        if tensor.dim() > 2 and tensor.shape[-1] == 11:
            sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = -model.alignment(source, MASK, before, target, REAL).log_likelihood.sum()
    return loss, max(sizes)


@pytest.mark.parametrize("name", KINDS)
def test_some_steps_at_a_time_are_all_steps(name, monkeypatch):
    model = build(KINDS[name])
    source, target, before = batch()
    results, kept = [], []
    for block in (2**23, 1):
        monkeypatch.setattr(aligned, "BLOCK", block)
        model.zero_grad()
        loss, most = kept_of_all_words(model, source, target, before)
        loss.backward()
        results.append((loss, [p.grad for p in model.parameters()]))
        kept.append(most)
    torch.testing.assert_close(results[0], results[1])
    assert kept == [MASK.numel() * 4 * 11, 0]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", ONLINE)
def test_what_was_not_read_changes_nothing(name, size, monkeypatch):
    model = build(ONLINE[name])
    torch.manual_seed(2)
    source = torch.randint(4, 13, (23, 11))
    mask = torch.ones(1, 11, dtype=torch.bool)
    read, step = [], model.step

    def reading(*given):
        made = step(*given)
        read.append(int((made.weights > 0).nonzero()[:, 1].max()) + 1)
        return made

    monkeypatch.setattr(model, "step", reading)

    def search(row):
        encoded = model.encode(row, mask)
        if size == 1:
            return greedy(model, encoded, max_length=4)[0]
        return beam(model, encoded, max_length=4, size=size)[0][0]

    unread = 0
    for row in source.split(1):
        read.clear()
        hypothesis = search(row)
        farthest = max(read)
        unread += 11 - farthest
        assert ((hypothesis.weights == 0) | (hypothesis.weights == 1)).all()
        chosen = hypothesis.weights.argmax(-1)
        assert (chosen.diff() >= 0).all()  # from left to right
        assert chosen.max() < farthest
        other = row.clone()
        other[:, farthest:] = (other[:, farthest:] - 4 + 3) % 9 + 4
        again = search(other)
        assert again.tokens == hypothesis.tokens
        assert again.log_prob == pytest.approx(hypothesis.log_prob)
        assert torch.equal(again.weights, hypothesis.weights)
    assert unread > 23


@pytest.mark.parametrize("name", ONLINE)
def test_an_online_model_trains_on_all_alignments(name):
    model = build(ONLINE[name]).train()
    source, target, before = batch()
    logits = model.head.logits(model(source, MASK, before).features)
    likelihood = torch.where(REAL, logits.gather(-1, target.unsqueeze(-1)).squeeze(-1), 0.0).sum(-1)
    torch.testing.assert_close(
        model.alignment(source, MASK, before, target, REAL).log_likelihood.double(), likelihood, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: HardMonotonic(**SMALL, order=2), "order must be 0, 1 or None"),
        (lambda: HardMonotonic(**SMALL, order=0, online=True), "online=True needs order=1"),
        (lambda: HardMonotonic(**SMALL, width=1), "width must be 2 or more"),
        (lambda: SegmentToSegment(**SMALL, score="location_aware"), "cannot score alignments"),
    ],
)
def test_errors_name_the_fix(build, message):
    with pytest.raises(ValueError, match=message):
        build()
