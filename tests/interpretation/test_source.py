"""Attention is read and changed without a change to the model."""

import pytest
import torch

import saccade
from saccade.distributions import Categorical
from saccade.interpretation.attribution import gradient_times_input
from saccade.interpretation.recording import knock_out, use_weights
from saccade.interpretation.source import attention_maps, source_attentions
from saccade.models import Cho, RNNSearch
from saccade.selections import Selection
from tests.models.family import FAMILY, SMALL

WITH_ATTENTION = sorted(name for name in FAMILY if not name.startswith(("cho", "sutskever", "multi_source_none")))
SOME = ["rnnsearch_fast_current", "rnnsearch_coverage", "luong_global_general_feeding", "luong_local_p_dot_parallel"]
SOME += ["luong_short_location", "transformer_sinusoidal_pre", "transformer_cross_windowed", "transformer_sparsemax"]


def inputs():
    source = torch.randint(4, 13, (3, 7))
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    return source, mask, torch.randint(4, 11, (3, 5))


def changed(model, function):
    return saccade.record(model, change=dict.fromkeys(source_attentions(model), function))


@pytest.mark.parametrize("name", WITH_ATTENTION)
def test_maps_are_what_the_model_reports(name) -> None:
    model, batch = FAMILY[name]().eval(), inputs()
    with torch.no_grad():
        decoded = model(*batch)
        maps = attention_maps(model, *batch)
    assert all(weights.dim() == 4 and weights.shape[2:] == (5, 7) for weights in maps.values())
    assert torch.allclose(list(maps.values())[-1].mean(1), decoded.weights, atol=1e-6)
    assert list(maps) == (list(source_attentions(model)) or ["decoder"])


@pytest.mark.parametrize("name", WITH_ATTENTION)
def test_the_same_weights_give_the_same_features(name) -> None:
    model, batch = FAMILY[name]().eval(), inputs()
    before = dict(model.named_modules())
    with torch.no_grad():
        wanted = model(*batch).features
        with changed(model, lambda weights, mask, steps: weights.clone()) as trace:
            found = model(*batch).features
    assert torch.allclose(found, wanted, atol=1e-5)
    assert dict(model.named_modules()) == before
    assert set(source_attentions(model)) <= set(trace.paths)


class Uniform(Selection):
    def select(self, scores, mask, *, query, prepared, state):
        return Categorical(mask / mask.sum(-1, keepdim=True).clamp(min=1))


@pytest.mark.parametrize("name", SOME)
def test_uniform_weights_are_those_of_a_uniform_selection(name) -> None:
    model, batch = FAMILY[name]().eval(), inputs()

    def flat(weights, mask, steps):
        return mask / mask.sum(-1, keepdim=True).clamp(min=1)

    with torch.no_grad():
        with changed(model, flat):
            found = model(*batch).features
        for attention in source_attentions(model).values():
            attention.selection = Uniform()
        wanted = model(*batch).features
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("name", SOME)
def test_steps_are_counted(name) -> None:
    model, batch = FAMILY[name]().eval(), inputs()
    asked = []

    def from_step_3(weights, mask, steps):
        asked.extend(steps)
        late = torch.tensor(steps) >= 3
        return torch.where(late.unsqueeze(-1), 0.0, weights)

    with torch.no_grad():
        wanted = model(*batch).features
        with saccade.record(model, change={list(source_attentions(model))[-1]: from_step_3}):
            found = model(*batch).features
    assert asked == list(range(5))
    assert torch.allclose(found[:, :3], wanted[:, :3], atol=1e-6)
    assert not torch.allclose(found[:, 3:], wanted[:, 3:], atol=1e-4)


@pytest.mark.parametrize("name", SOME)
def test_the_trace_holds_the_changed_weights(name) -> None:
    model, batch = FAMILY[name]().eval(), inputs()
    maps = attention_maps(model, *batch)
    with torch.no_grad(), changed(model, knock_out([0, 2], rescale=False)) as trace:
        model(*batch)
    path = next(iter(maps))  # the layers after it read other queries
    found = trace.joined(path)[:1]  # the first pair: without padding, all keys are there
    wanted = maps[path][:1, ..., : found.shape[-1]].clone()  # this model may read some keys only
    wanted[..., [0, 2]] = 0.0
    torch.testing.assert_close(found[:, :, :1], wanted[:, :, :1], rtol=0, atol=1e-5)  # later steps read other states
    assert (found[..., [0, 2]] == 0).all()


def test_an_error_leaves_the_model_as_it_was() -> None:
    model, batch = FAMILY["rnnsearch_fast_current"]().eval(), inputs()
    selection = model.decoder.attention.selection
    with (
        pytest.raises(ValueError, match=r"of the shape \(3, 1, 1, 7\) of 'decoder.attention', got \(3, 1, 7\)"),
        changed(model, lambda weights, mask, steps: weights[:, 0]),
    ):
        model(*batch)
    assert model.decoder.attention.selection is selection
    model = RNNSearch(**SMALL, selection="continuous_softmax").eval()
    with (
        pytest.raises(TypeError, match="through a basis"),
        changed(model, lambda weights, mask, steps: weights.clone()),
    ):
        model(*batch)
    assert source_attentions(Cho(**SMALL)) == {} == attention_maps(Cho(**SMALL), *batch)
    with pytest.raises(TypeError, match="Linear has no decoder"):
        source_attentions(torch.nn.Linear(3, 5))


@pytest.mark.parametrize(
    "name", ["rnnsearch_fast_current", "luong_global_general_feeding", "transformer_sinusoidal_pre"]
)
def test_gradient_times_input_step_by_step(name) -> None:
    model = FAMILY[name]().double().eval()
    source, target = torch.randint(4, 13, (7,)), torch.randint(4, 11, (5,))
    target_in = torch.cat([torch.tensor([1]), target[:-1]])
    found = gradient_times_input(model, source, torch.ones(7, dtype=torch.bool), target, target_in)
    assert found.shape == (5, 7)
    table = model.encoder.embedding.table

    def log_prob(step: int) -> torch.Tensor:
        decoded = model(source[None], torch.ones(1, 7, dtype=torch.bool), target_in[None])
        return model.head.logits(decoded.features)[0, step].log_softmax(-1)[target[step]]

    # All that a place's vector is multiplied by, one place at a time: the derivative by a factor 1 + t at t = 0.
    for step, place in ((0, 3), (4, 6), (2, 0)):

        def scaled(module, args, output, place=place, t=0.0):
            return torch.cat([output[:, :place], output[:, place : place + 1] * (1 + t), output[:, place + 1 :]], dim=1)

        values = []
        for t in (1e-5, -1e-5):
            handle = table.register_forward_hook(lambda m, a, o, t=t: scaled(m, a, o, t=t) if o.shape[1] == 7 else o)
            with torch.no_grad():
                values.append(log_prob(step).item())
            handle.remove()
        assert found[step, place].item() == pytest.approx(abs(values[0] - values[1]) / 2e-5, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("name", ["rnnsearch_fast_current", "transformer_sinusoidal_pre"])
def test_weights_of_another_source(name) -> None:
    """Weights of one run, patched into another: all attention to the source is then that of the first."""
    model, (source, mask, target_in) = FAMILY[name]().eval(), inputs()
    other = source.flip(1)
    mask = torch.ones_like(mask)
    with torch.no_grad():
        with saccade.record(model) as first:
            model(source, mask, target_in)
        given = {path: use_weights(first.joined(path)) for path in source_attentions(model)}
        with saccade.record(model, change=given) as second:
            patched = model(other, mask, target_in).features
        plain = model(other, mask, target_in).features
    for path in given:
        torch.testing.assert_close(second.joined(path), first.joined(path), rtol=0, atol=1e-6)
    assert not torch.allclose(patched, plain, atol=1e-4)
