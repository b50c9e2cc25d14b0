"""Lei et al. (2016): what is picked, what it costs, and that the generator's expected gradient is right."""

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.nn import functional as F

import saccade
from saccade.distributions import BinarySequence
from saccade.models import Costs, Rationale, costs_of
from saccade.training import seed_everything

VOCAB, CLASSES, LENGTH = 11, 3, 4
LENGTHS = torch.tensor([4, 2, 1])
MASK = torch.arange(LENGTH) < LENGTHS[:, None]
LABELS = torch.tensor([2, 0, 1])


def made(generator="independent", **arguments):
    seed_everything(3)
    sizes = {"embedding_dim": 5, "hidden_dim": 7, "sampler_dim": 2, "dropout": 0.0}
    weights = {"sparsity": 0.3, "coherence": 0.7}
    model = Rationale(vocab=VOCAB, classes=CLASSES, generator=generator, **{**sizes, **weights, **arguments}).double()
    for parameter in model.parameters():  # so that no probability is near a half
        torch.nn.init.normal_(parameter, std=0.8)
    return model


def tokens(seed=5):
    return torch.randint(4, VOCAB, (3, LENGTH), generator=torch.Generator().manual_seed(seed)).masked_fill(~MASK, 0)


def of_row(row, logits):
    return F.cross_entropy(logits, LABELS[row][None], reduction="none")


def losses(logits):
    return F.cross_entropy(logits, LABELS, reduction="none")


class Forced:
    """Makes a model draw these z (batch, length)."""

    def __init__(self, model, z):
        self.model, self.z = model, z

    def __enter__(self):
        def draw(module, inputs, found):
            z = self.z.unsqueeze(1)
            if isinstance(found, BinarySequence):
                return replace(found, along=found.given(z))
            return replace(found, drawn=z)

        self.hook = self.model.rationale.selection.register_forward_hook(draw)

    def __exit__(self, *_):
        self.hook.remove()


def by_hand(model, z):
    """The cost of each example, word by word, and log p(z | x)."""
    ids = tokens()
    costs, log_probs = [], []
    for row, length in enumerate(LENGTHS.tolist()):
        own = z[row, :length].tolist()
        words = model.embedding(ids[row, :length])
        read = words[torch.tensor(own) > 0]
        last = []
        for layer in model.rationale.aggregation.layers:
            state, outputs = layer.cell.zeros(1, like=words), []
            for word in read:
                state = layer.step(word[None], state)
                outputs.append(state[0][0])
            last.append(state[0][0])
            read = outputs
        logits = model.output_proj(torch.cat(last))
        changes = sum(abs(a - b) for a, b in itertools.pairwise(own))
        costs.append(F.cross_entropy(logits, LABELS[row]) + 0.3 * sum(own) + 0.7 * changes)
        states, _ = model.generator(words[None], torch.ones(1, length, dtype=torch.bool))
        selection, score = model.rationale.selection, model.rationale.score
        logits = states[0] @ score.key_proj.weight[0] + score.key_proj.bias
        log_prob = 0.0
        if isinstance(selection, saccade.layers.SequentialSelection):
            state = selection.layer.cell.zeros(1, like=words)
            for place, (logit, key) in enumerate(zip(logits, states[0], strict=True)):
                logit = logit + selection.output_proj(state[0])[0, 0]
                log_prob = log_prob + F.logsigmoid(logit if own[place] else -logit)
                state = selection.layer.step(torch.cat([key, key.new_tensor([own[place]])])[None], state)
        else:
            for place, logit in enumerate(logits):
                log_prob = log_prob + F.logsigmoid(logit if own[place] else -logit)
        log_probs.append(log_prob)
    return torch.stack(costs), torch.stack(log_probs)


every_generator = pytest.mark.parametrize("generator", ["independent", "recurrent"])


def outcomes():
    """Every z of the batch's first row; the other rows go along with its beginning."""
    for bits in itertools.product([0.0, 1.0], repeat=LENGTH):
        yield torch.tensor(bits, dtype=torch.float64).expand(3, -1) * MASK


@every_generator
def test_costs_are_those_of_the_equation(generator):
    model = made(generator).eval()
    for z in outcomes():
        with Forced(model, z):
            found = model.costs(tokens(), MASK, losses=losses)
        costs, log_probs = by_hand(model, z)
        torch.testing.assert_close(found.total, costs)
        torch.testing.assert_close(losses(found.logits) + found.penalty, costs)
        torch.testing.assert_close(found.penalty, found.figures["sparsity"] + found.figures["coherence"])
        torch.testing.assert_close(found.figures["kept"], z.sum(1) / LENGTHS)
        distribution = model._read(tokens(), MASK).selection
        torch.testing.assert_close(distribution.log_prob(z.unsqueeze(1))[:, 0], log_probs)


@every_generator
@pytest.mark.parametrize("baseline", [0.0, -1.7])
def test_the_expected_gradient_is_that_of_the_expected_cost(generator, baseline):
    model = made(generator).train()
    parameters = list(model.parameters())
    exact = [torch.zeros_like(each) for each in parameters]
    mean = [torch.zeros_like(each) for each in parameters]
    total = torch.zeros(3, dtype=torch.float64)
    for row, length in enumerate(LENGTHS.tolist()):  # each row has its own outcomes
        for bits in itertools.product([0.0, 1.0], repeat=length):
            z = torch.zeros(3, LENGTH, dtype=torch.float64)
            z[row, :length] = torch.tensor(bits, dtype=torch.float64)
            costs, log_probs = by_hand(model, z)
            p = log_probs[row].exp()
            total[row] += p.item()
            for each, gradient in zip(
                exact, torch.autograd.grad(p * costs[row], parameters, allow_unused=True), strict=True
            ):
                each += 0 if gradient is None else gradient
            model.baseline.value.fill_(baseline)
            model.baseline.known.fill_(True)
            with Forced(model, z):
                found = model.costs(tokens(), MASK, losses=losses)
            gradients = torch.autograd.grad(found.total[row], parameters, allow_unused=True)
            for each, gradient in zip(mean, gradients, strict=True):
                each += 0 if gradient is None else p.detach() * gradient
    torch.testing.assert_close(total, torch.ones(3, dtype=torch.float64))
    assert all(bool(each.any()) for each in exact)
    torch.testing.assert_close(mean, exact)


def test_the_baseline_moves_in_training_alone():
    model = made().train()
    with Forced(model, next(iter(outcomes()))):
        cost = model.eval().costs(tokens(), MASK, losses=losses).total.mean().item()
        assert not model.baseline.known
        model.train().costs(tokens(), MASK, losses=losses)
        assert model.baseline.value.item() == pytest.approx(-cost)  # the first batch is its own baseline
        model.baseline.value.fill_(2.0)
        model.costs(tokens(), MASK, losses=losses)
    assert model.baseline.value.item() == pytest.approx(0.9 * 2.0 - 0.1 * cost)
    without = made(baseline="none").train()
    without.costs(tokens(), MASK, losses=losses)
    assert without.baseline is None


def test_penalties_grow_in_training_alone():
    model = made(warmup=4)
    z = torch.ones(3, LENGTH, dtype=torch.float64) * MASK
    with Forced(model, z):
        found = [model.train().costs(tokens(), MASK, losses=losses).figures["sparsity"][0].item() for _ in range(6)]
        assert found == pytest.approx([0.3, 0.6, 0.9, 1.2, 1.2, 1.2])
        assert made(warmup=4).eval().costs(tokens(), MASK, losses=losses).penalty.isfinite().all()
        assert model.eval().costs(tokens(), MASK, losses=losses).figures["sparsity"][0].item() == pytest.approx(1.2)
    fresh = made(warmup=4).eval()
    with Forced(fresh, z):
        assert fresh.costs(tokens(), MASK, losses=losses).figures["sparsity"][0].item() == pytest.approx(1.2)
    assert fresh.steps == 0


def test_a_share_is_kept_in_training_and_evaluation_and_costs_nothing():
    model = made(estimator="straight_through", share=0.5)
    for mode in (model.train(), model.eval()):
        found = mode.costs(tokens(), MASK, losses=losses)
        torch.testing.assert_close(found.figures["kept"], torch.tensor([2 / 4, 1 / 2, 1.0], dtype=torch.float64))
        assert not found.figures["sparsity"].any()
    found.total.sum().backward()
    assert model.generator.input_proj.weight.grad is None or model.generator.input_proj.weight.grad.isfinite().all()


def deciding(count, generator):
    """Texts of seven words, one of which decides between four classes: the texts, the classes and the places."""
    texts = torch.randint(20, 40, (count, 7), generator=generator)
    classes = torch.randint(4, (count,), generator=generator)
    places = torch.randint(7, (count,), generator=generator)
    words = 4 + 4 * torch.randint(3, (count,), generator=generator) + classes
    return texts.scatter(1, places[:, None], words[:, None]), classes, places


@every_generator
@pytest.mark.parametrize("estimator", ["reinforce", "straight_through"])
def test_learns_to_pick_the_word_that_decides(generator, estimator):
    seed_everything(1)
    model = Rationale(
        vocab=40,
        classes=4,
        embedding_dim=16,
        hidden_dim=16,
        encoder_layers=1,
        cell="gru",
        generator=generator,
        sampler_dim=5,
        estimator=estimator,
        sparsity=0.05,
        coherence=0.02,
        warmup=30,
    )
    random = torch.Generator().manual_seed(3)
    optimiser = torch.optim.Adam(model.parameters(), lr=1.5e-2)
    mask = torch.ones(64, 7, dtype=torch.bool)
    for _ in range(150):
        texts, classes, _ = deciding(64, random)
        found = model.costs(texts, mask, losses=partial(F.cross_entropy, target=classes, reduction="none"))
        optimiser.zero_grad()
        found.total.mean().backward()
        optimiser.step()
    texts, classes, places = deciding(500, random)
    with torch.no_grad(), saccade.record(model.eval()) as trace:
        right = model(texts, torch.ones_like(texts, dtype=torch.bool)).argmax(1) == classes
    picked = trace["rationale"].picked[:, 0, 0]
    assert right.float().mean() >= 0.97
    assert picked.gather(1, places[:, None]).sum() >= 0.95 * picked.sum()  # whoever picks nothing may mean a class, too
    assert 0.09 <= picked.mean() <= 0.16


@every_generator
@pytest.mark.parametrize("estimator", ["reinforce", "straight_through"])
def test_padding_neither_counts_nor_changes_anything(generator, estimator):
    model = made(generator, estimator=estimator).eval()
    together = model.costs(tokens(), MASK, losses=losses)
    other = tokens().masked_fill(~MASK, 7)
    torch.testing.assert_close(model.costs(other, MASK, losses=losses).total, together.total)
    for row, length in enumerate(LENGTHS.tolist()):
        part = (slice(row, row + 1), slice(length))
        alone = model.costs(tokens()[part], MASK[part], losses=partial(of_row, row))
        torch.testing.assert_close(alone.total[0], together.total[row])
        torch.testing.assert_close(alone.logits[0], together.logits[row])


@every_generator
def test_record_sees_the_probabilities_and_the_picks(generator):
    model = made(generator).eval()
    with saccade.record(model) as trace:
        model(tokens(), MASK)
    call = trace["rationale"]
    assert call.shape == (3, 1, 1, LENGTH)
    assert torch.equal(call.picked > 0, call.weights > 0.5)
    assert not call.weights[~MASK[:, None, None]].any()
    with saccade.record(model, change={"rationale": lambda weights, mask, steps: torch.zeros_like(weights)}):
        nothing = model(tokens(), MASK)
    torch.testing.assert_close(nothing, model.output_proj.bias.expand(3, -1))


@every_generator
def test_straight_through_gradients_reach_the_generator(generator):
    model = made(generator, estimator="straight_through").train()
    found = model.costs(tokens(), MASK, losses=losses)
    assert torch.equal(found.total, losses(found.logits) + found.penalty)
    found.total.sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model.generator.input_proj.weight.grad.any()


def test_a_model_without_costs_minimises_the_loss():
    model = torch.nn.Linear(5, CLASSES)
    x = torch.randn(3, 5)
    found = costs_of(model, [x], losses)
    assert isinstance(found, Costs)
    torch.testing.assert_close(found.total, losses(model(x)))
    assert found.penalty == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"generator": "both"}, "generator must be 'independent' or 'recurrent', got 'both'"),
        ({"estimator": "gumbel"}, "estimator must be"),
        ({"baseline": "mean"}, "baseline must be"),
        ({"sparsity": -1.0}, "sparsity must be 0 or more"),
        ({"share": 0.0, "estimator": "straight_through"}, "share must be above 0 and at most 1, got 0.0"),
        ({"share": 0.2}, "share needs estimator='straight_through'"),
        ({"temperature": 0.0}, "temperature must be above 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rationale(vocab=VOCAB, classes=CLASSES, **arguments)
