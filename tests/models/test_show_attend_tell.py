"""Show, Attend and Tell against the paper's equations, and its losses against enumeration."""

from itertools import product

import pytest
import torch

from saccade.decoders import shift_right
from saccade.models import ShowAttendTell
from saccade.search import beam, greedy
from saccade.selections import Hard
from saccade.tasks.generation.writer import log_likelihoods
from tests.oracles.recurrent import sigmoid

D, VOCAB, N, E = 7, 11, 6, 5
SMALL = {"source_dim": D, "target_vocab": VOCAB, "encoder": "given", "embedding_dim": E, "hidden_dim": N}
TARGET = torch.tensor([[4, 9, 3], [7, 2, 5]])
REAL = torch.tensor([[True, True, True], [True, True, False]])


def made(places: int = 5, **options):
    torch.manual_seed(0)
    model = ShowAttendTell(**SMALL, **{"dropout": 0.0, **options}).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(0.0, 0.5)
    return model, torch.randn(2, places, D, dtype=torch.float64), torch.ones(2, places).bool()


@torch.no_grad()
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("gate", [False, True])
def test_the_equations_of_the_paper(hard, gate) -> None:
    model, a, mask = made(gate=gate, selection="hard" if hard else "softmax")
    decoded = model(a, mask, TARGET)
    logits, weights = model.head.logits(decoded.features), decoded.weights
    d, score = model.decoder, model.decoder.attention.score
    for row in range(2):
        start = torch.tanh(d.bridge.proj.weight @ a[row].mean(0) + d.bridge.proj.bias)
        h, c = start[:N], start[N:]
        for t, token in enumerate(TARGET[row]):
            e = d.embedding.weight[token]
            energies = [
                score.hidden_proj.weight[0] @ torch.tanh(score.query_proj.weight @ h + score.key_proj.weight @ a_i)
                for a_i in a[row]
            ]
            alpha = torch.softmax(torch.stack(energies), 0)
            torch.testing.assert_close(weights[row, t], alpha)
            z = a[row][alpha.argmax()] if hard else alpha @ a[row]
            if gate:
                proj = d.attention.aggregation.gate_proj
                z = sigmoid(proj.weight[0] @ h + proj.bias) * z
            x = d.input_proj.weight @ e + d.input_proj.bias + d.context_proj.weight @ z + d.cell.weight @ h
            i, f, g, o = x.split(N)
            c = sigmoid(f + d.cell.bias) * c + sigmoid(i) * torch.tanh(g)
            h = sigmoid(o) * torch.tanh(c)
            out = torch.tanh(e + d.state_readout.weight @ h + d.state_readout.bias + d.context_readout.weight @ z)
            torch.testing.assert_close(logits[row, t], d.head.proj.weight @ out + d.head.proj.bias)


@pytest.mark.parametrize("options", [{}, {"selection": "hard"}, {"selection": "sparsemax", "score": "general"}])
def test_steps_are_those_of_teacher_forcing_and_searches_agree(options) -> None:
    model, a, mask = made(**options)
    with torch.no_grad():
        decoded = model(a, mask, TARGET)
        state = model.begin(model.encode(a, mask))
        for t in range(3):
            step = model.step(TARGET[:, t], state)
            state = step.state
            torch.testing.assert_close(step.logits, model.head.logits(decoded.features[:, t]))
            torch.testing.assert_close(step.weights, decoded.weights[:, t])
        encoded = model.encode(a, mask)
        one = beam(model, encoded, size=1, max_length=6)
        plain = greedy(model, encoded, max_length=6)
        assert [several[0].tokens for several in one] == [hypothesis.tokens for hypothesis in plain]
        assert beam(model, encoded, size=3, max_length=6)[0][0].score >= one[0][0].score - 1e-9


def loss_of(model, a, mask, target, real) -> torch.Tensor:
    """What the task minimises, summed over the batch."""
    decoded = model(a, mask, shift_right(target, 1))
    total = model.head.loss(decoded.features[real], target[real]).total
    added = model.penalty(decoded, target, real, lambda: log_likelihoods(model, decoded, target, real))
    return total if added is None else total + added


def test_every_place_should_get_a_weight_of_one_in_all() -> None:
    model, a, mask = made(doubly_stochastic=0.7)
    model.train()
    weights = model(a, mask, shift_right(TARGET, 1)).weights.detach()
    wanted = sum(
        0.7 * (1 - sum(weights[row, t, i] for t in range(3) if REAL[row, t])) ** 2 for row in range(2) for i in range(5)
    )
    plain = made(doubly_stochastic=0.0)[0].train()
    torch.testing.assert_close(loss_of(model, a, mask, TARGET, REAL) - loss_of(plain, a, mask, TARGET, REAL), wanted)


def test_places_may_be_left_out_where_one_is_drawn() -> None:
    assert ShowAttendTell(**SMALL).doubly_stochastic == 1.0
    assert ShowAttendTell(**SMALL, selection="hard").doubly_stochastic == 0.0
    assert ShowAttendTell(**SMALL, selection="hard", doubly_stochastic=0.3).doubly_stochastic == 0.3


def test_the_mean_of_the_estimates_is_the_enumerated_gradient(monkeypatch) -> None:
    """Over all draws, with their probabilities; the baseline, whatever it is, changes nothing."""
    places, steps = 3, 2
    model, a, mask = made(
        places,
        selection=Hard(expectation_rate=0.0),
        doubly_stochastic=0.0,
        reward_weight=float(steps),  # the reward is a mean over steps
        entropy_weight=0.0,
    )
    a, mask = a[:1], mask[:1]
    target, real = TARGET[:1, :steps], torch.ones(1, steps).bool()
    forced: list[int] = []

    def draw(self, distribution, expected):
        found = torch.zeros_like(distribution.probs)
        found[..., forced.pop(0)] = 1.0
        return found

    monkeypatch.setattr(Hard, "_draw", draw)
    model.train()
    names, parameters = zip(*model.named_parameters(), strict=True)
    bound, mean = 0.0, [torch.zeros_like(p) for p in parameters]
    for picks in product(range(places), repeat=steps):
        forced[:] = picks
        decoded = model(a, mask, shift_right(target, 1))
        logs = torch.log_softmax(model.head.logits(decoded.features), -1).gather(-1, target.unsqueeze(-1)).sum()
        share = torch.stack([decoded.weights[0, t, place] for t, place in enumerate(picks)]).prod()
        bound = bound + share * logs
        forced[:] = picks
        model.baseline.value.fill_(-1.3)
        model.baseline.known.fill_(True)
        total = loss_of(model, a, mask, target, real)
        found = torch.autograd.grad(total, parameters, allow_unused=True)
        mean = [m if g is None else m + share.detach() * g for m, g in zip(mean, found, strict=True)]
    exact = torch.autograd.grad(-bound, parameters, allow_unused=True)
    for name, estimate, wanted in zip(names, mean, exact, strict=True):
        wanted = torch.zeros_like(estimate) if wanted is None else wanted
        torch.testing.assert_close(estimate, wanted, msg=lambda text, name=name: f"{name}: {text}")


def test_a_caption_reads_expectations_or_samples_throughout() -> None:
    model, a, mask = made(selection=Hard(expectation_rate=0.5), doubly_stochastic=0.0)
    model.train()
    with torch.no_grad():
        a, tokens = a[:1].expand(64, -1, -1), TARGET[:1].expand(64, -1)
        picked = model(a, mask[:1].expand(64, -1), tokens).selection.draw.amax(-1) == 1
    assert (picked.all(1) == picked.any(1)).all()  # "for a given image", section 4.1
    assert 8 < picked.all(1).sum() < 56


def test_the_baseline_moves_in_training_and_the_entropy_counts() -> None:
    model, a, mask = made(selection=Hard(expectation_rate=0.0), doubly_stochastic=0.0, entropy_weight=0.3)
    model.train()
    seen = []
    for _ in range(3):
        torch.manual_seed(3)
        loss_of(model, a, mask, TARGET, REAL)
        seen.append(float(model.baseline.value))
    assert bool(model.baseline.known)
    reward = seen[0]  # the first batch starts from its own mean
    assert seen == pytest.approx([reward] * 3)
    torch.manual_seed(3)
    with_entropy = loss_of(model, a, mask, TARGET, REAL)
    model.entropy_weight = 0.0
    torch.manual_seed(3)
    entropy = model(a, mask, shift_right(TARGET, 1)).selection.entropy()[REAL].sum()
    torch.manual_seed(3)
    torch.testing.assert_close(loss_of(model, a, mask, TARGET, REAL) - with_entropy, 0.3 * entropy)


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="reward_weight must be 0 or more"):
        ShowAttendTell(**SMALL, reward_weight=-1.0)
    with pytest.raises(ValueError, match="Unknown encoder"):
        ShowAttendTell(**{**SMALL, "encoder": "cnn"})
