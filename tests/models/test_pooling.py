"""Pooling by hard attention: its gradient against enumeration, and its baseline."""

from itertools import product

import pytest
import torch
from torch.nn import functional as F

from saccade.models import AttentionPooling
from saccade.selections import Hard, Selection

PLACES, DIM, CLASSES = 3, 5, 4
WANTED = torch.tensor([2, 0])


def made(**options) -> tuple[AttentionPooling, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    sizes = {"dim": DIM, "classes": CLASSES, "hidden_dim": 7, "encoder": "given", "dropout": 0.0}
    model = AttentionPooling(**sizes, **{"selection": Hard(expectation_rate=0.0), **options}).double().train()
    return model, torch.randn(2, PLACES, DIM, dtype=torch.float64), torch.ones(2, PLACES).bool()


def losses(logits: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, WANTED[: len(logits)], reduction="none")


def gradients(model: AttentionPooling) -> list[torch.Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("queries", [1, 2])
def test_the_mean_of_the_estimates_is_the_enumerated_gradient(monkeypatch, queries) -> None:
    """Over all draws, with their probabilities; the baseline, whatever it is, changes nothing."""
    model, states, mask = made(num_queries=queries)
    states, mask = states[:1], mask[:1]
    forced: list[int] = []
    monkeypatch.setattr(
        Hard, "_draw", lambda self, distribution, *_: F.one_hot(torch.tensor([forced]), PLACES).to(distribution.probs)
    )
    draws = list(product(range(PLACES), repeat=queries))
    exact, chances = torch.zeros((), dtype=torch.float64), []
    for draw in draws:
        forced[:] = draw
        pooled, reading = model.read(states, mask)
        chance = reading.weights[0].gather(1, torch.tensor(forced)[:, None]).prod()
        exact = exact + chance * losses(model.output_proj(pooled)).sum()
        chances.append(float(chance.detach()))
    model.zero_grad()
    exact.backward()
    wanted = gradients(model)
    found = [torch.zeros_like(each) for each in wanted]
    for draw, chance in zip(draws, chances, strict=True):
        forced[:] = draw
        model.zero_grad()
        model.baseline.value.fill_(-0.7)
        model.baseline.known.fill_(True)
        model.costs(states, mask, losses=losses).total.sum().backward()
        found = [total + chance * each for total, each in zip(found, gradients(model), strict=True)]
    for estimate, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(estimate, truth)


def test_training_moves_the_baseline_and_evaluation_does_not() -> None:
    model, states, mask = made()
    found = model.costs(states, mask, losses=losses)
    first = -losses(found.logits).mean()
    torch.testing.assert_close(model.baseline.value, first)  # there was none before
    found = model.costs(states, mask, losses=losses)
    torch.testing.assert_close(model.baseline.value, 0.9 * first - 0.1 * losses(found.logits).mean())
    before = model.baseline.value.clone()
    model.eval()
    found = model.costs(states, mask, losses=losses)
    torch.testing.assert_close(found.total, losses(found.logits))
    torch.testing.assert_close(found.logits, model(states, mask))
    assert model.baseline.value == before


class OwnHard(Selection):
    """A draw without a gradient, by a user's own selection."""

    stochastic = True
    reinforced = True

    def select(self, scores, mask, *, query, prepared, state):
        return Hard(expectation_rate=0.0).select(scores, mask, query=query, prepared=prepared, state=state)


@pytest.mark.parametrize(("selection", "rewarded"), [(OwnHard(), True), ("gumbel_softmax", False)])
def test_draws_without_a_gradient_are_rewarded(selection, rewarded) -> None:
    model, states, mask = made(selection=selection)
    assert model.hard == rewarded
    found = model.costs(states, mask, losses=losses)
    assert torch.equal(found.total, losses(found.logits)) != rewarded


def test_soft_attention_minimises_the_loss_alone() -> None:
    model, states, mask = made(selection="softmax")
    found = model.costs(states, mask, losses=losses)
    torch.testing.assert_close(found.total, losses(found.logits))
    assert not any("baseline" in name for name in model.state_dict())


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_weights_below_zero_are_refused(weight) -> None:
    with pytest.raises(ValueError, match="reward_weight must be 0 or more"):
        made(reward_weight=weight)
