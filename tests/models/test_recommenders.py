"""D-Attn, MPCN and their baselines against their equations, padding, empty sides and the core's record."""

import pytest
import torch

import saccade
from saccade.layers import CoAttention, FactorisationMachine, TextConvolution
from saccade.models import MPCN, DeepCoNN, DualAttention, Factorisation, create
from saccade.selections import Softmax

SIZES = {"users": 7, "items": 5, "vocab": 29, "reviews": 4, "words": 6}
SMALL = {
    "factorisation": {"factors": 3},
    "deep_conn": {"embedding_dim": 5, "filters": 7, "hidden_dim": 13, "dropout": 0.0},
    "dual_attention": {
        "embedding_dim": 5,
        "local_filters": 7,
        "global_filters": 3,
        "hidden_dim": 11,
        "output_dim": 2,
        "dropout": 0.0,
    },
    "mpcn": {"embedding_dim": 5, "hidden_dim": 7, "pointers": 2, "factors": 3, "dropout": 0.0},
}
USER = torch.tensor([[3, 6, 1, 2], [2, 0, 0, 0], [0, 0, 0, 0]])
ITEM = torch.tensor([[1, 5, 0], [4, 4, 2], [3, 0, 0]])
"""How many words the reviews have: one user has none."""


def texts(lengths, seed):
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(-1)
    return torch.randint(4, 29, mask.shape, generator=torch.Generator().manual_seed(seed)) * mask, mask


@pytest.fixture
def inputs():
    return [torch.tensor([1, 6, 0]), torch.tensor([2, 4, 1]), *texts(USER, 3), *texts(ITEM, 4)]


def made(name, **options):
    torch.manual_seed(1)
    return create(name, **SIZES, **{**SMALL[name], **options}).double().eval()


@pytest.mark.parametrize("name", SMALL)
def test_one_rating_each_whatever_else_is_in_the_batch_or_pads_it(name, inputs):
    model = made(name)
    found = model(*inputs)
    assert found.shape == (3, 1)
    assert found.isfinite().all()
    for row in range(3):
        torch.testing.assert_close(model(*(each[row : row + 1] for each in inputs)), found[row : row + 1])
    wider = [torch.nn.functional.pad(each, (0, 1, 0, 2)) if each.dim() == 3 else each for each in inputs]
    wider = [torch.where(m, t, 28) if t.dtype == torch.long else t for t, m in _with_masks(wider)]
    if name == "dual_attention":
        model = create(name, **{**SIZES, "reviews": 6, "words": 7}, **SMALL[name]).double().eval()
        own = {key: value for key, value in made(name).state_dict().items() if not key.endswith("score.filter")}
        own |= {
            key: torch.nn.functional.pad(value, (0, 42 - 24))
            for key, value in made(name).state_dict().items()
            if key.endswith("score.filter")
        }
        model.load_state_dict(own)
    torch.testing.assert_close(model(*wider), found)


def _with_masks(inputs):
    everything = torch.ones((), dtype=torch.bool)
    masks = [everything, everything, inputs[3], inputs[3], inputs[5], inputs[5]]
    return zip(inputs, masks, strict=True)


@pytest.mark.parametrize("name", SMALL)
def test_all_parameters_learn(name, inputs):
    model = made(name).train()
    model(*inputs).square().sum().backward()
    silent = [key for key, value in model.named_parameters() if value.grad is None or not value.grad.isfinite().all()]
    assert not silent
    still = {key for key, value in model.named_parameters() if not value.grad.any()}
    assert still <= {key for key in still if key.startswith("pointers.") and key.endswith("bias")}


def test_factorisation_by_its_equation(inputs):
    model = made("factorisation")
    torch.nn.init.normal_(model.user_bias.weight[1:])
    torch.nn.init.normal_(model.item_bias.weight[1:])
    user, item = inputs[:2]
    for row in range(3):
        u, i = int(user[row]), int(item[row])
        wanted = model.user_bias.weight[u, 0] + model.item_bias.weight[i, 0]
        wanted = wanted + model.user_factors.weight[u] @ model.item_factors.weight[i]
        torch.testing.assert_close(model(*inputs)[row, 0], wanted)
    assert not model.user_factors.weight[0].any()  # the unknown user counts as the average one


def test_factorisation_without_factors_or_biases(inputs):
    assert made("factorisation", factors=0)(*inputs).tolist() == [[0.0], [0.0], [0.0]]
    plain = made("factorisation", biases=False)
    assert plain(*inputs)[2] == 0.0  # an unknown user
    with pytest.raises(ValueError, match="nothing to learn"):
        Factorisation(**SIZES, factors=0, biases=False)


def test_the_penalty_is_that_of_the_rated(inputs):
    model = made("factorisation", penalty=0.5)
    found = model.costs(*inputs, losses=lambda ratings: ratings.squeeze(1) * 0)
    u, i = model.user_factors.weight[inputs[0]], model.item_factors.weight[inputs[1]]
    torch.testing.assert_close(found.total, 0.5 * (u.square().sum(1) + i.square().sum(1)))


def test_factorisation_machine_is_the_sum_over_pairs():
    torch.manual_seed(2)
    machine, x = FactorisationMachine(dim=5, factors=3).double(), torch.randn(7, 5).double()
    v = machine.factors
    pairs = sum((v[i] @ v[j]) * x[:, i] * x[:, j] for i in range(5) for j in range(i + 1, 5))
    torch.testing.assert_close(machine(x).squeeze(1), machine.linear(x).squeeze(1) + pairs)


def test_convolution_is_the_largest_window_that_begins_in_the_text():
    torch.manual_seed(2)
    layer, words = TextConvolution(input_dim=3, filters=5, widths=(2, 4)).double(), torch.randn(2, 7, 3).double()
    mask = torch.arange(7) < torch.tensor([[3], [0]])
    found = layer(words, mask)
    assert not found[1].any()
    padded = torch.cat([words[0, :3], torch.zeros(4, 3).double()])
    wanted = []
    for width, convolution in zip((2, 4), layer.convolutions, strict=True):
        windows = [padded[t : t + width].T for t in range(3)]
        values = [torch.einsum("fdw,dw->f", convolution.weight, w) + convolution.bias for w in windows]
        wanted.append(torch.stack(values).relu().amax(0))
    torch.testing.assert_close(found[0], torch.cat(wanted))


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_co_attention_by_its_equation(pooling):
    torch.manual_seed(3)
    layer = CoAttention(dim=5, hidden_dim=3, selection=Softmax, pooling=pooling).double()
    a, b = torch.randn(1, 4, 5).double(), torch.randn(1, 7, 5).double()
    a_mask, b_mask = torch.tensor([[True, True, False, True]]), torch.arange(7)[None] < 5
    read = layer(a, b, a_mask, b_mask, a, b)
    scores = layer.score(layer.hidden(a), layer.hidden(b))[0]
    rows, columns = [0, 1, 3], range(5)
    pooled = {"max": max, "mean": lambda each: sum(each) / len(each)}[pooling]
    own = torch.stack([pooled([scores[i, j] for j in columns]) for i in rows]).softmax(0)
    others = torch.stack([pooled([scores[i, j] for i in rows]) for j in columns]).softmax(0)
    torch.testing.assert_close(read.user.weights[0, 0, rows], own)
    torch.testing.assert_close(read.item.weights[0, 0, :5], others)
    torch.testing.assert_close(read.user.context[0, 0], own @ a[0, rows])
    assert not read.user.weights[0, 0, 2]
    assert not read.item.weights[0, 0, 5:].any()


def test_co_attention_with_an_empty_side():
    layer = CoAttention(dim=5, selection=Softmax)
    a, b = torch.randn(1, 3, 5), torch.randn(1, 2, 5)
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    read = layer(a, b, nothing, torch.ones(1, 2, dtype=torch.bool), a, b)
    assert not read.user.context.any()
    assert read.item.weights.tolist() == [[[0.5, 0.5]]]


def test_mpcn_reads_the_reviews_it_points_at(inputs):
    model = made("mpcn")
    with saccade.record(model) as trace:
        found = model(*inputs)
    sides = [
        f"pointers.{n}.{level}.{side}" for n in (0, 1) for level in ("reviews", "words") for side in ("user", "item")
    ]
    assert sorted(trace.paths) == sorted(sides)
    picked = trace["pointers.0.reviews.user"].picked[:, 0, 0]
    assert picked.sum(1).tolist() == [1.0, 1.0, 0.0]  # nobody's reviews are not pointed at
    assert not picked[1, 1:].any()
    chosen = [trace[f"pointers.{n}.reviews.user"].picked[0, 0, 0].argmax() for n in (0, 1)]
    words = inputs[2].clone()
    for review in set(range(4)) - {int(each) for each in chosen}:
        words[0, review] = words[0, review].flip(0) if USER[0, review] == 6 else words[0, review]
    torch.testing.assert_close(model(inputs[0], inputs[1], words, *inputs[3:])[0], found[0])


@pytest.mark.parametrize("name", ["deep_conn", "dual_attention", "mpcn"])
def test_models_of_texts_may_have_biases(name, inputs):
    model = made(name, biases=True, penalty=0.5)
    without = made(name)
    with torch.no_grad():
        model.biases.user_bias.weight[1:] = 2.0
        model.biases.item_bias.weight[1:] = 3.0
    assert without.load_state_dict(model.state_dict(), strict=False).missing_keys == []
    known = torch.stack([2.0 * (inputs[0] > 0), 3.0 * (inputs[1] > 0)], dim=1).double()
    torch.testing.assert_close(model(*inputs), without(*inputs) + known.sum(1, keepdim=True))
    found = model.costs(*inputs, losses=lambda ratings: ratings.squeeze(1) * 0)
    torch.testing.assert_close(found.total, 0.5 * known.square().sum(1))
    assert without.costs(*inputs, losses=lambda ratings: ratings.squeeze(1)).total.equal(without(*inputs).squeeze(1))


@pytest.mark.parametrize("combine", ["concat", "sum", "ffn"])
def test_pointers_learn_through_their_samples(combine, inputs):
    model = made("mpcn", combine=combine, pointers=3).train()
    model(*inputs)[:2].sum().backward()
    for number in range(3):
        assert model.pointers[number].reviews.score.query_proj.weight.grad.any()


def test_softmax_pointers_mix_all_reviews(inputs):
    found = made("mpcn", selection="softmax")(*inputs)
    assert found.isfinite().all()
    with pytest.raises(ValueError, match="combine must be"):
        MPCN(**SIZES, combine="mean")


@pytest.mark.parametrize("options", [{"gate": "position"}, {"gate": "none"}, {"parts": "local"}, {"parts": "global"}])
def test_variants_of_dual_attention(options, inputs):
    model = made("dual_attention", **options)
    with saccade.record(model) as trace:
        assert model(*inputs).isfinite().all()
    kinds = {path.split(".")[1] for path in trace.paths}
    wanted = {"local", "whole"} - ({"whole"} if "none" in options.values() or "local" in options.values() else set())
    assert kinds == wanted - ({"local"} if "global" in options.values() else set())


def test_local_attention_by_its_equation(inputs):
    model = made("dual_attention", parts="local")
    with saccade.record(model) as trace:
        model(*inputs)
    x = model.embedding(inputs[2][0][inputs[3][0]])  # the words of all reviews in a row
    convolution = model.user.local.score.convolution
    padded = torch.cat([torch.zeros(2, 5).double(), x, torch.zeros(2, 5).double()])
    wanted = [
        torch.sigmoid((convolution.weight[0] * padded[t : t + 5].T).sum() + convolution.bias[0]) for t in range(len(x))
    ]
    torch.testing.assert_close(trace["user.local"].weights[0, 0, 0, : len(x)], torch.stack(wanted))


def test_scalar_gate_is_one_number_for_a_text(inputs):
    model = made("dual_attention")
    with saccade.record(model) as trace:
        model(*inputs)
    weights = trace["user.whole"].weights[0, 0, 0]
    x = model.embedding(inputs[2][0][inputs[3][0]])
    score = model.user.whole.score
    wanted = torch.sigmoid((score.filter[0, :, : len(x)].T * x).sum() + score.bias)
    torch.testing.assert_close(weights, wanted.expand(12))


def test_wrong_choices_are_named():
    for options, message in (({"gate": "soft"}, "gate must be"), ({"parts": "both"}, "parts must be")):
        with pytest.raises(ValueError, match=message):
            DualAttention(**SIZES, **options)
    with pytest.raises(ValueError, match="filters"):
        DeepCoNN(**SIZES, filters=0)
