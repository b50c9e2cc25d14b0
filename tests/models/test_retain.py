"""RETAIN against the paper's equations as loops, its contributions, and its prefixes."""

import pytest
import torch

import saccade
from saccade.models import RETAIN, VisitBag, VisitRNN, VisitTransformer

VOCAB, STATIC, CLASSES = 13, 5, 3
SIZES = {"vocab": VOCAB, "static": STATIC, "classes": CLASSES}
LENGTHS = [7, 2, 5, 1]
KINDS = {
    "retain": lambda each: RETAIN(**SIZES, each_visit=each, embedding_dim=11, hidden_dim=17, dropout=0.0),
    "rnn": lambda each: VisitRNN(**SIZES, each_visit=each, embedding_dim=11, hidden_dim=17, num_layers=2, dropout=0.0),
    "transformer": lambda each: VisitTransformer(**SIZES, each_visit=each, dim=18, num_heads=3, dropout=0.0),
    "bag": lambda each: VisitBag(**SIZES, each_visit=each),
}


def batch(lengths=LENGTHS, seed: int = 2) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    rows, visits = len(lengths), max(lengths)
    mask = torch.arange(visits) < torch.tensor(lengths)[:, None]
    codes = torch.randint(0, VOCAB, (rows, visits, 6), generator=made) * mask[..., None]
    amounts = torch.randn(rows, visits, 6, generator=made) * (codes != 0)
    gaps = torch.rand(rows, visits, generator=made) * mask
    static = torch.randint(0, STATIC, (rows, 2), generator=made)
    return [codes, mask, amounts, gaps, static, torch.randn(rows, 2, generator=made) * (static != 0)]


def seeded(kind: str, each: bool):
    torch.manual_seed(5)
    model = KINDS[kind](each).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def prefix_of(given: list[torch.Tensor], row: int, end: int) -> list[torch.Tensor]:
    codes, mask, amounts, gaps, static, static_amounts = (each[row : row + 1] for each in given)
    return [codes[:, :end], mask[:, :end], amounts[:, :end], gaps[:, :end], static, static_amounts]


@pytest.mark.parametrize("kind", KINDS)
def test_each_visit_is_answered_from_the_visits_up_to_it(kind) -> None:
    each, last = seeded(kind, True), seeded(kind, False)
    last.load_state_dict(each.state_dict())
    given = batch()
    found = each(*given)
    assert found.shape == (len(LENGTHS), max(LENGTHS), CLASSES)
    for row, length in enumerate(LENGTHS):
        for end in range(1, length + 1):
            torch.testing.assert_close(found[row, end - 1], last(*prefix_of(given, row, end))[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(last(*given), torch.stack([found[r, n - 1] for r, n in enumerate(LENGTHS)]))


def test_equations() -> None:
    """The paper's, visit by visit and code by code."""
    model, given = seeded("retain", False), batch()
    codes, _, amounts, gaps, static, static_amounts = given
    logits = model(*given)
    for row, length in enumerate(LENGTHS):
        v = [
            sum((x * model.embedding.weight[c] for c, x in zip(codes[row, i], amounts[row, i], strict=True) if c), 0.0)
            for i in range(length)
        ]
        v = [torch.zeros(11) + each for each in v]
        hidden = {"alpha": torch.zeros(1, 17), "beta": torch.zeros(1, 17)}
        e, beta = {}, {}
        for i in reversed(range(length)):
            inputs = torch.cat([v[i], gaps[row, i : i + 1]]).unsqueeze(0)
            for name in hidden:
                hidden[name] = getattr(model, name).step(inputs, (hidden[name],))[0]
            e[i] = model.attention.score.key_proj(hidden["alpha"])[0, 0]
            beta[i] = torch.tanh(model.gate_proj(hidden["beta"]))[0]
        alpha = torch.stack([e[i] for i in range(length)]).softmax(0)
        context = sum(alpha[i] * beta[i] * v[i] for i in range(length))
        known = sum(x * model.static.weight[c] for c, x in zip(static[row], static_amounts[row], strict=True) if c)
        torch.testing.assert_close(logits[row], model.output_proj(context) + known, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["retain", "bag"])
def test_contributions_and_the_bias_are_the_logits(kind) -> None:
    model, given = seeded(kind, False), batch()
    found = model.contributions(*given)
    total = found.codes.sum((1, 2)) + found.static.sum(1) + found.bias
    assert (total - model(*given)).abs().max() < 1e-5
    codes, mask = given[:2]
    assert (found.codes[codes == 0] == 0).all()
    assert (found.codes[~mask] == 0).all()


def test_training_with_prefixes_gives_the_gradients_of_the_loop() -> None:
    model, given = seeded("retain", True), batch()
    visits = model.embedding(given[0], given[2]).detach().requires_grad_()
    weights = torch.randn(*visits.shape, generator=torch.Generator().manual_seed(1))
    together = model._of_prefixes(visits, given[1], given[3])
    apart = model._prefix_by_prefix(visits, given[1], given[3])
    torch.testing.assert_close(together, apart, atol=1e-6, rtol=1e-5)
    parameters = [visits, *model.alpha.parameters(), *model.beta.parameters(), *model.gate_proj.parameters()]
    grads = [torch.autograd.grad((each * weights).sum(), parameters) for each in (together, apart)]
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


def test_long_records_are_read_in_groups(monkeypatch) -> None:
    model, given = seeded("retain", True), batch()
    whole = model(*given)
    grads = torch.autograd.grad(whole.square().sum(), list(model.alpha.parameters()))
    monkeypatch.setattr("saccade.models.retain.MOST_STEPS", 20)  # of 28, 3, 15 and 1 steps
    with saccade.record(model) as trace:
        apart = model(*given)
    torch.testing.assert_close(apart, whole)
    assert trace["attention"].weights.shape == (4, 1, 7, 7)
    for one, two in zip(torch.autograd.grad(apart.square().sum(), list(model.alpha.parameters())), grads, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(model(*given), whole)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("each", [False, True])
def test_padding_changes_nothing(kind, each) -> None:
    model, given = seeded(kind, each), batch()
    wide = [torch.cat([t, torch.full_like(t[:, :1], 1 if t.dtype == torch.long else 0)], 1) for t in given[:4]] + given[
        4:
    ]
    found, padded = model(*given), model(*wide)
    if each:
        real = given[1]
        found, padded = found[real], padded[:, :-1][real]
    torch.testing.assert_close(found, padded, atol=1e-6, rtol=1e-5)


def test_a_visit_without_codes_adds_nothing() -> None:
    model, given = seeded("retain", False), batch([3])
    given[0][0, 1] = 0
    assert (model.contributions(*given).codes[0, 1] == 0).all()
    assert torch.isfinite(model(*given)).all()


@pytest.mark.parametrize("each", [False, True])
def test_recorded_weights(each) -> None:
    model, given = seeded("retain", each), batch()
    with saccade.record(model) as trace:
        model(*given)
    weights = trace["attention"].weights
    assert weights.shape == (4, 1, 7 if each else 1, 7)
    torch.testing.assert_close(weights[0, 0, -1].sum(), torch.tensor(1.0))
    if each:
        assert (weights[:, 0].triu(1) == 0).all()


def test_interventions_reach_every_prefix() -> None:
    model, given = seeded("retain", True), batch()
    with saccade.record(model, change={"attention": lambda weights, mask, steps: weights * 0}):
        changed = model(*given)
    bias = model.output_proj.bias + model.static(*given[4:])[:1]
    torch.testing.assert_close(changed[0, :7], bias.expand(7, -1))


def test_other_selections_and_those_that_do_not_fit() -> None:
    model = RETAIN(**SIZES, each_visit=True, embedding_dim=11, hidden_dim=17, selection="sparsemax").eval()
    assert torch.isfinite(model(*batch())).all()
    with pytest.raises(ValueError, match="LinearChain does not"):
        RETAIN(**SIZES, each_visit=False, selection="linear_chain")
    with pytest.raises(ValueError, match="multiple of num_heads"):
        VisitTransformer(**SIZES, each_visit=False, dim=10, num_heads=3)
