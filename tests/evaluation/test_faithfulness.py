"""Tests of attention as an explanation."""

import math

import pytest
import torch

import saccade
from saccade.data.special import BOS
from saccade.evaluation.faithfulness import faithfulness
from saccade.evaluation.meanings import MEANINGS
from saccade.interpretation.source import source_attentions
from saccade.models import Cho, RNNSearch, Transformer
from tests.models.family import FAMILY, SMALL, TINY

MODELS = ["rnnsearch_paper_previous", "luong_global_general_feeding", "luong_local_p_dot_parallel"]
MODELS += ["transformer_sinusoidal_pre", "luong_short_location"]


def pair(steps: int = 5):
    return torch.randint(4, 13, (7,)), torch.randint(4, 11, (steps,))


def literal(model, source, target, share):
    """Step after step, each in a forward pass of its own in which nothing else is changed."""
    begun = torch.cat([torch.tensor([BOS]), target[:-1]])
    batch = source[None], torch.ones(1, len(source), dtype=torch.bool), begun[None]
    decoded = model(*batch)
    before = model.head.logits(decoded.features)[0].softmax(-1)
    count = math.ceil(share * len(source))
    rows = {"comprehensiveness": [], "sufficiency": [], "uniform": []}
    for step in range(len(target)):
        most = decoded.weights[0, step].topk(count).indices

        def changed(name, step=step, most=most):
            def change(weights, mask, steps):
                if step not in steps:
                    return weights
                keys = weights.shape[-1]
                marked = torch.zeros(len(source), dtype=torch.bool)
                marked[most] = True
                row = weights[..., steps.index(step), :]
                if name == "uniform":
                    new = torch.ones_like(row) / keys * row.sum(-1, keepdim=True)
                else:
                    new = row * (marked if name == "sufficiency" else ~marked)[:keys]
                    new = new / new.sum(-1, keepdim=True).clamp(min=1e-30) * row.sum(-1, keepdim=True)
                out = weights.clone()
                out[..., steps.index(step), :] = new
                return out

            with saccade.record(model, change=dict.fromkeys(source_attentions(model), change)):
                return model.head.logits(model(*batch).features)[0, step].softmax(-1)

        for name, values in rows.items():
            after = changed(name)
            distance = (before[step] - after).abs().sum() / 2
            lost = before[step, target[step]] - after[target[step]]
            values.append((distance if name == "uniform" else lost).item())
    return {name: sum(values) / len(values) for name, values in rows.items()}


@pytest.mark.parametrize("name", MODELS)
def test_step_by_step(name) -> None:
    model = FAMILY[name]().double().eval()
    source, target = pair()
    found = faithfulness(model, [(source, target)], share=0.4, draws=2)
    with torch.no_grad():
        wanted = literal(model, source, target, 0.4)
    for figure, value in wanted.items():
        assert found[figure] == pytest.approx(value, abs=1e-6), figure
    assert set(found) <= set(MEANINGS)


def test_several_pairs_are_averaged_by_their_steps() -> None:
    model = FAMILY["rnnsearch_fast_current"]().eval()
    pairs = [pair(3), pair(5)]
    both = faithfulness(model, pairs)["uniform"]
    each = [faithfulness(model, [one])["uniform"] for one in pairs]
    assert both == pytest.approx((3 * each[0] + 5 * each[1]) / 8)


def test_a_model_that_looks_everywhere_alike() -> None:
    model = RNNSearch(**SMALL).eval()
    with torch.no_grad():
        model.decoder.attention.score.hidden_proj.weight.zero_()  # all scores are 0
    found = faithfulness(model, [pair()])
    for name in ("uniform", "permutation", "uniform_flips", "permutation_flips"):
        assert found[name] == pytest.approx(0, abs=1e-6)
    assert math.isnan(found["gradient_kendall"])  # there is no order in equal weights


def test_a_source_of_one_place_has_no_other_weights() -> None:
    found = faithfulness(Transformer(**TINY).eval(), [(torch.tensor([7]), torch.tensor([5, 6]))])
    for name in ("sufficiency", "uniform", "permutation"):
        assert found[name] == pytest.approx(0, abs=1e-6)
    assert found["comprehensiveness"] == pytest.approx(found["random_comprehensiveness"])


def test_draws_depend_on_the_seed_alone() -> None:
    model, pairs = FAMILY["transformer_sinusoidal_pre"]().eval(), [pair()]
    assert faithfulness(model, pairs) == faithfulness(model, pairs)
    assert faithfulness(model, pairs)["permutation"] != faithfulness(model, pairs, seed=1)["permutation"]


def test_mistakes_are_named() -> None:
    model = RNNSearch(**SMALL)
    with pytest.raises(ValueError, match="training mode"):
        faithfulness(model, [pair()])
    model.eval()
    for options, message in (({"share": 0.0}, "share must be"), ({"draws": 0}, "draws must be 1 or more, got 0")):
        with pytest.raises(ValueError, match=message):
            faithfulness(model, [pair()], **options)
    with pytest.raises(ValueError, match="no pairs"):
        faithfulness(model, [])
    with pytest.raises(ValueError, match="Cho has no attention"):
        faithfulness(Cho(**SMALL).eval(), [pair()])
