"""Weights that are changed while a model runs."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

import saccade
from saccade.interpretation.recording import ablate_head, knock_out, patch, uniform
from tests.interpretation.recording.models import Cached, Eager, Layer, Stack


@pytest.fixture
def x():
    return torch.randn(2, 7, 12)


def half(weights, mask, steps):
    return weights / 2


def double(weights, mask, steps):
    return weights * 2


STYLES = ["functional", "method", "einsum", "joined"]


@pytest.mark.parametrize("name", ["fused", *STYLES])
def test_the_model_continues_with_the_changed_weights(name, x):
    model = Layer() if name == "fused" else Eager(name)
    own = model.weights(x).float()
    wanted = own.roll(1, -1) * 0.7
    with saccade.record(
        model, change={type(model).__name__: lambda weights, mask, steps: weights.roll(1, -1) * 0.7}
    ) as trace:
        found = model(x)
    value = model.split(x)[2]
    torch.testing.assert_close(found, (wanted @ value).transpose(1, 2).flatten(2), rtol=0, atol=1e-5)
    recorded = next(iter(trace.values())).weights
    torch.testing.assert_close(recorded.view_as(wanted), wanted, rtol=0, atol=1e-5)
    assert torch.equal(model(x), model(x))


@pytest.mark.parametrize("name", ["fused", "method"])
def test_weights_written_into(name, x):
    model = Layer() if name == "fused" else Eager(name)

    def write(weights, mask, steps):
        weights[:, 1] = 0.0
        return weights

    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), saccade.record(model, change={"*": write}):
            found = model(x)
        with mode(), saccade.record(model, change={"*": ablate_head(1)}):
            torch.testing.assert_close(found, model(x), rtol=0, atol=1e-6)
        assert (found.unflatten(-1, (3, 4))[:, :, 1] == 0).all()


@pytest.mark.parametrize("name", ["fused", "method"])
def test_the_same_object_changes_nothing(name, x):
    model = Layer() if name == "fused" else Eager(name)
    seen = []
    with saccade.record(model, change={"*": lambda weights, mask, steps: seen.append(steps) or weights}) as trace:
        assert torch.equal(model(x), model(x))
    assert seen == [range(7), range(7, 14)]
    assert len(trace) == 2
    torch.testing.assert_close(trace.calls[0].weights, model.weights(x).float(), rtol=0, atol=1e-6)


def test_patterns_choose_modules(x):
    model = Stack()
    with saccade.record(model) as plain:
        model(x)
    with saccade.record(model, change={"second": half}) as trace:
        model(x)
    for name, factor in (("first", 1.0), ("first#1", 1.0), ("second", 0.5)):
        torch.testing.assert_close(trace[name].weights, plain[name].weights * factor, rtol=0, atol=1e-6)
    with saccade.record(model, change={"s*": half, "second": double}) as trace:  # one after the other
        model(x)
    torch.testing.assert_close(trace["second"].weights, plain["second"].weights, rtol=0, atol=1e-6)


def test_outer_recordings_see_the_changed_weights(x):
    model = Stack()
    change = {"second": half}
    with saccade.record(model, change=change) as outer, saccade.record(model, change=change) as inner:
        model(x)
    assert torch.equal(inner["second"].weights, outer["second"].weights)
    torch.testing.assert_close(outer["second"].weights.sum(-1), torch.full((2, 3, 7), 0.25), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["bool", "added", "causal"])
def test_masks(kind, x):
    allowed = torch.ones(7, 7, dtype=torch.bool).tril()
    added = torch.zeros(7, 7).masked_fill(~allowed, torch.finfo(torch.float32).min)
    options = {"bool": {"attn_mask": allowed}, "added": {"attn_mask": added}, "causal": {"is_causal": True}}[kind]
    model = Layer()
    with saccade.record(model, change={"*": uniform()}) as trace:
        model(x, **options)
    wanted = (allowed / allowed.sum(-1, keepdim=True)).expand(2, 3, 7, 7)
    torch.testing.assert_close(trace["Layer"].weights, wanted, rtol=0, atol=1e-6)


def test_grouped_heads():
    class Grouped(nn.Module):
        def forward(self, query, key, value):
            return F.scaled_dot_product_attention(query, key, value, enable_gqa=True)

    query, (key, value) = torch.randn(2, 6, 5, 4), torch.randn(2, 2, 2, 7, 4)
    model = Grouped()
    with saccade.record(model, change={"*": lambda weights, mask, steps: weights.clone()}):
        found = model(query, key, value)
    torch.testing.assert_close(found, model(query, key, value), rtol=0, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_layers_of_pytorch(training, norm_first, x):
    """Also where the layer would take its fast path, which has no weights."""
    layer = nn.TransformerEncoderLayer(12, 3, 17, 0.0, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    padding = torch.arange(7) >= torch.tensor([[7], [4]])
    with torch.no_grad():
        wanted = model(x, src_key_padding_mask=padding)
        with saccade.record(model, change={"layers.*": lambda weights, mask, steps: weights.clone()}) as trace:
            found = model(x, src_key_padding_mask=padding)
        assert list(trace) == ["layers.0.self_attn", "layers.1.self_attn"]
        torch.testing.assert_close(found[~padding], wanted[~padding], rtol=0, atol=1e-5)
        with saccade.record(model, change={"layers.0": uniform()}) as trace:
            model(x, src_key_padding_mask=padding)
    wanted = (~padding / (~padding).sum(-1, keepdim=True))[:, None, None].expand(2, 3, 7, 7)
    torch.testing.assert_close(trace["layers.0"].weights, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_multihead_attention_returns_the_changed_weights(average, batched, x):
    model = nn.MultiheadAttention(12, 3, batch_first=True).eval()
    x = x if batched else x[0]
    own, weights = model(x, x, x, average_attn_weights=average)
    with saccade.record(model, change={"*": half}) as trace:
        found, changed = model(x, x, x, average_attn_weights=average)
    torch.testing.assert_close(changed, weights / 2, rtol=0, atol=1e-6)
    wanted = (own - model.out_proj.bias) / 2 + model.out_proj.bias
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    assert list(trace) == ["MultiheadAttention"]
    with saccade.record(model, change={"*": lambda weights, mask, steps: weights}):
        assert torch.equal(model(x, x, x, average_attn_weights=average)[1], weights)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention():
    class Flex(nn.Module):
        def forward(self, query, key, value):
            return flex_attention(query, key, value, score_mod=lambda score, b, h, q, k: score + (q - k) * h)

    model, (query, key, value) = Flex(), torch.randn(3, 2, 3, 16, 8)
    torch._dynamo.reset()
    with torch.no_grad(), saccade.record(model) as plain:
        wanted = model(query, key, value)
    with torch.no_grad(), saccade.record(model, change={"*": half}) as trace:
        found = model(query, key, value)
    torch.testing.assert_close(found, wanted / 2, rtol=0, atol=1e-5)
    torch.testing.assert_close(trace["Flex"].weights, plain["Flex"].weights / 2, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["fused", "method"])
def test_gradients_flow_through_changed_weights(name, x):
    model = Layer() if name == "fused" else Eager(name)
    parameters = list(model.parameters())
    wanted = torch.autograd.grad(model(x).square().sum(), parameters)
    with saccade.record(model, change={"*": lambda weights, mask, steps: weights.clone()}):
        found = torch.autograd.grad(model(x).square().sum(), parameters)
        recomputed = torch.autograd.grad(checkpoint(model, x, use_reentrant=False).square().sum(), parameters)
    for each in (found, recomputed):
        for got, want in zip(each, wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_weights_used_twice_are_changed_twice(x):
    class Twice(nn.Module):
        def forward(self, x):
            weights = (x @ x.mT).softmax(-1)
            return torch.cat([weights @ x, weights @ x.flip(1)], dim=-1)

    model = Twice()
    with saccade.record(model, change={"*": half}) as trace:
        found = model(x)
    torch.testing.assert_close(found, model(x) / 2, rtol=0, atol=1e-6)
    assert len(trace) == 1


def test_dropped_out_weights_cannot_be_changed(x):
    model = Eager("method", dropout=0.5)
    with (
        pytest.raises(NotImplementedError, match=r"Dropout or another operation.*model\.eval\(\)"),
        saccade.record(model, change={"*": half}),
    ):
        model(x)


def test_compiled_models(x):
    model = Stack()
    compiled = torch.compile(model, backend="eager")
    compiled(x)
    with saccade.record(model, change={"second": knock_out([0])}) as trace:
        compiled(x)
    assert (trace["second"].weights[..., 0] == 0).all()


def test_mistakes_are_named(x):
    model = Stack()
    message = "'third' matched no attention; the modules that attended are first, second"
    with pytest.raises(ValueError, match=message), saccade.record(model, change={"third": half, "first": half}):
        model(x)
    with (
        pytest.raises(ValueError, match="'first' matched no attention; none ran"),
        saccade.record(model, change={"first": half}),
    ):
        pass
    with pytest.raises(ZeroDivisionError), saccade.record(model, change={"third": half}):  # the first error counts
        raise ZeroDivisionError
    for wrong in ([half], {"first": 3}):
        with pytest.raises(TypeError, match="change must be a dictionary of functions by path"):
            saccade.record(model, change=wrong)
    for wrong, got in ((lambda *_: None, "NoneType"), (lambda weights, *_: weights[:, :1], r"\(2, 1, 7, 7\)")):
        with (
            pytest.raises(
                ValueError, match=rf"change\['second'\] must return .* \(2, 3, 7, 7\) of 'second', got {got}"
            ),
            saccade.record(model, change={"second": wrong}),
        ):
            model(x)
    assert not saccade.interpretation.recording.patches.patches.calls.thread.recordings


def test_softmaxes_of_a_change_are_not_attention(x):
    model = Layer()

    def soft(weights, mask, steps):
        return F.softmax(weights, dim=-1) @ torch.eye(7)

    with saccade.record(model, change={"*": soft}) as trace:
        model(x)
    assert len(trace) == 1


def test_several_queries_of_a_stateful_score_are_changed_one_by_one():
    """Some of them: the others keep their weights."""
    score = saccade.scores.create("additive", query_dim=4, key_dim=4, hidden_dim=4)
    score.stateful = True  # as those are that look at earlier weights
    attention = saccade.Attention(score=score, selection=saccade.selections.Sparsemax())
    query, keys = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    seen = []

    def last(weights, mask, steps):
        seen.append(steps)
        return weights * 0 if steps == range(2, 3) else weights

    wanted = attention(query, keys)
    with saccade.record(attention, change={"*": last}):
        found = attention(query, keys)
    assert seen == [range(1), range(1, 2), range(2, 3)]
    torch.testing.assert_close(found.weights[:, :2], wanted.weights[:, :2])
    assert (found.context[:, 2] == 0).all()


@pytest.mark.parametrize("eager", [False, True])
def test_positions_in_a_window(eager):
    """A cache that has dropped its first keys still counts from the beginning of the text."""
    model, x, seen = Cached(window=4, eager=eager), torch.randn(1, 11, 12), []

    def watch(weights, mask, steps, keys):
        seen.append((steps, keys))
        return weights * 1.0

    with torch.no_grad(), saccade.record(model, change={"*": watch}) as trace:
        model.steps(x)
    assert seen == [(range(n, n + 1), range(max(n - 3, 0), n + 1)) for n in range(11)]
    assert [(call.query_positions, call.key_positions) for call in trace.calls] == seen
    with torch.no_grad(), saccade.record(model, change={"*": knock_out([2, 6])}) as trace:
        model.steps(x)
    joined = trace.joined("Cached")
    assert (joined[..., [2, 6]] == 0).all()
    assert (joined[:, :, 7, [4, 5, 7]] > 0).all()


@pytest.mark.parametrize("window", [None, 4])
def test_weights_of_another_generation(window):
    model, x, other = Cached(window), torch.randn(1, 11, 12), torch.randn(1, 11, 12)
    with torch.no_grad(), saccade.record(model) as trace:
        model.steps(other)
    with torch.no_grad(), saccade.record(model, change=patch(trace)) as changed:
        found = model.steps(x)
    torch.testing.assert_close(changed.joined("Cached"), trace.joined("Cached"), rtol=0, atol=1e-6)
    values = model.split(x)[2]
    wanted = (trace.joined("Cached") @ values).transpose(1, 2).flatten(2)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="do not fit queries 11 to 11"), saccade.record(model, change=patch(trace)):
        model.steps(torch.randn(1, 13, 12))


class OverQueries(nn.Module):
    """Attention whose weights are multiplied with their axes in another order than queries, keys."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        if self.kind == "transposed":
            weights = (x @ x.mT).softmax(-2)
            return (x.mT @ weights).mT
        weights = torch.einsum("bhqd,bhkd->bqhk", x, x).softmax(-1)
        return torch.einsum("bqhk,bhkd->bhqd", weights, x)


@pytest.mark.parametrize("kind", ["transposed", "einsum"])
def test_weights_in_another_order_are_not_changed_in_silence(kind):
    model, x = OverQueries(kind), torch.randn(2, 3, 5, 7)
    with saccade.record(model) as trace:
        model(x)
    assert trace["OverQueries"].weights.shape == (2, 3, 5, 5)
    with (
        pytest.raises(NotImplementedError, match="or another operation"),
        saccade.record(model, change={"*": lambda w, m, s: w / 2}),
    ):
        model(x)
