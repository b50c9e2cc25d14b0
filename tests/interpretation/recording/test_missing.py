"""Attention that names do not lead to is seen; what cannot be seen is told."""

import contextlib
import copy
import functools
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from tests.interpretation.recording.models import Layer, plain_weights

SDPA = F.scaled_dot_product_attention
SOFTMAX = torch.softmax
TABLE = {"sdpa": SDPA}


def _closing():
    kernel = SDPA

    def attend(self, query, key, value):
        return kernel(query, key, value)

    return attend


class Holding(nn.Module):
    kernel = staticmethod(SDPA)
    closed = _closing()

    def __init__(self):
        super().__init__()
        self.partial = functools.partial(SDPA, is_causal=False)
        self.table = {"kernel": [SDPA]}

    def by_default(self, query, key, value, kernel=SDPA):
        return kernel(query, key, value)

    def forward(self, way, query, key, value):
        if way == "default argument":
            return self.by_default(query, key, value)
        if way == "closure":
            return self.closed(query, key, value)
        if way == "partial":
            return self.partial(query, key, value)
        if way == "dict":
            return TABLE["sdpa"](query, key, value)
        if way == "list":
            return self.table["kernel"][0](query, key, value)
        if way == "class attribute":
            return self.kernel(query, key, value)
        if way == "operator":
            return torch.ops.aten.scaled_dot_product_attention(query, key, value)
        if way == "overload":
            return torch.ops.aten.scaled_dot_product_attention.default(query, key, value)
        return torch._C._nn.scaled_dot_product_attention(query, key, value)


WAYS = ("default argument", "closure", "partial", "dict", "list", "class attribute", "operator", "overload", "binding")


@pytest.mark.parametrize("way", WAYS)
def test_kernels_captured_earlier(way):
    model = Holding()
    query, key, value = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 13)
    alone = model(way, query, key, value)
    with saccade.record(model) as trace:
        assert torch.equal(model(way, query, key, value), alone)
    (call,) = trace.values()
    torch.testing.assert_close(call.weights, plain_weights(query, key).float(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_kernels_captured_earlier_are_changed(way):
    model, x = Holding(), torch.randn(2, 3, 5, 11)
    with saccade.record(model, change={"Holding": lambda weights, mask, steps: weights * 0}) as trace:
        assert (model(way, x, x, x) == 0).all()
    assert (trace["Holding"].weights == 0).all()


class Later(nn.Module):
    """Is given its kernel after it has been recorded once."""

    def __init__(self):
        super().__init__()
        self.kernel, self.table = None, {"kernel": None}
        self.inner = nn.Sequential(nn.Linear(11, 11), nn.Identity())

    def forward(self, x):
        kernel = getattr(self, "added", None) or self.kernel or self.table["kernel"]
        return x if kernel is None else kernel(x, x, x)


def _set_kernel(model):
    model.kernel = SDPA


def _set_partial(model):
    model.kernel = functools.partial(SDPA, is_causal=False)


def _fill_table(model):
    model.table["kernel"] = SDPA


def _add_attribute(model):
    model.added = SDPA


@pytest.mark.parametrize("give", [_set_kernel, _set_partial, _fill_table, _add_attribute])
def test_kernels_that_a_known_model_is_given_later(give):
    model, x = Later(), torch.randn(2, 3, 5, 11)
    for _ in range(2):
        with saccade.record(model) as trace:
            model(x)
        assert not trace
    give(model)
    for _ in range(2):
        with saccade.record(model) as trace:
            model(x)
        torch.testing.assert_close(trace["Later"].weights.double(), plain_weights(x, x), rtol=0, atol=1e-6)


class Pooling(nn.Module):
    """Values multiplied by weights, and summed."""

    def forward(self, way, scores, values):
        if way == "row":
            return (torch.softmax(scores, -1).unsqueeze(-1) * values).sum(1)
        if way == "column":
            return (F.softmax(scores.unsqueeze(-1), dim=1) * values).sum(dim=1)
        if way == "transposed":
            return torch.bmm(F.softmax(scores.unsqueeze(-1), dim=1).transpose(1, 2), values).squeeze(1)
        if way == "einsum":
            return torch.einsum("bn,bnd->bd", scores.softmax(-1), values)
        return values.mul(scores.softmax(-1)[..., None]).sum(-2)


@pytest.mark.parametrize("way", ["row", "column", "transposed", "einsum", "mul"])
def test_values_that_are_weighted_and_summed(way):
    model, scores, values = Pooling(), torch.randn(3, 5), torch.randn(3, 5, 7)
    with saccade.record(model) as trace:
        context = model(way, scores, values)
    weights = trace["Pooling"].weights
    assert weights.shape == (3, 1, 1, 5)
    torch.testing.assert_close((weights[:, 0] @ values).squeeze(1), context, rtol=0, atol=1e-6)


class Unbatched(nn.Module):
    def forward(self, query, key, value):
        return F.softmax(query @ key.T / 3, dim=-1) @ value


def test_attention_without_a_batch():
    query, key, value = torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13)
    model = Unbatched()
    with saccade.record(model) as trace:
        output = model(query, key, value)
    assert trace["Unbatched"].shape == (1, 1, 5, 7)
    torch.testing.assert_close(trace["Unbatched"].weights[0, 0] @ value, output)


class TalkingHeads(nn.Module):
    """Heads are mixed after the softmax: by a convolution, a linear layer or a product."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 1, bias=False)
        self.linear = nn.Linear(3, 5, bias=False)

    def forward(self, way, query, key, value):
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        if way == "conv":
            weights = self.conv(weights)
        elif way == "linear":
            weights = self.linear(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        else:
            weights = torch.einsum("bhij,gh->bgij", weights, self.linear.weight)
        return weights @ value


@torch.no_grad()
@pytest.mark.parametrize("way", ["conv", "linear", "einsum"])
def test_talking_heads(way):
    query, key, value = torch.randn(2, 3, 7, 11), torch.randn(2, 3, 13, 11), torch.randn(2, 5, 13, 17)
    model = TalkingHeads()
    with saccade.record(model) as trace:
        output = model(way, query, key, value)
    (call,) = trace.values()
    assert call.shape == (2, 5, 7, 13)
    torch.testing.assert_close(call.weights @ value, output, rtol=0, atol=1e-5)
    mixed = torch.einsum(
        "bhij,gh->bgij",
        plain_weights(query, key, scale=1.0).float(),
        model.conv.weight[:, :, 0, 0] if way == "conv" else model.linear.weight,
    )
    torch.testing.assert_close(call.weights, mixed, rtol=0, atol=1e-5)


class SigmoidAttention(nn.Module):
    """Attention that no softmax normalises."""

    def forward(self, x):
        return torch.sigmoid(x @ x.transpose(-2, -1)) @ x


class Chunked(nn.Module):
    """A softmax whose result is rearranged."""

    def forward(self, x):
        weights = F.pad(torch.softmax(x @ x.transpose(-2, -1), -1), (0, 1))
        return weights[..., :-1] @ x


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.unseen, self.chunked = Layer(), SigmoidAttention(), Chunked()
        self.idle = SigmoidAttention()

    def forward(self, x):
        return self.chunked(self.unseen(self.seen(x)))


def test_what_is_not_seen_is_told():
    model, x = Both(), torch.randn(2, 7, 12)
    told = pytest.warns(UserWarning, match=r"not in the trace: unseen \(SigmoidAttention ran.*chunked .*pad")
    with told as warned, saccade.record(model) as trace:
        model(x)
    assert len(warned) == 1
    assert [path for path, _ in trace.missing] == ["unseen", "chunked"]
    assert list(trace) == ["seen"]
    assert not model.unseen._forward_pre_hooks
    assert not model.idle._forward_pre_hooks


def test_no_warning_for_what_is_left_out_or_did_not_run():
    model, x = Both(), torch.randn(2, 7, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with saccade.record(model) as trace:
            model.seen(x)
    assert trace.missing == []


class Draft(nn.Module):
    """A model that another one runs."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        return self.layer(x)


class Assisted(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()
        self.listed = [Layer()]  # which PyTorch does not know

    def generate(self, x, draft):
        return self.listed[0](self.layer(draft(x)))


def test_other_models_are_not_recorded_under_this_ones_name():
    model, draft, x = Assisted(), Draft(), torch.randn(2, 7, 12)
    with pytest.warns(UserWarning, match="Draft .it is not part of the model"), saccade.record(model) as trace:
        model.generate(x, draft)
    assert list(trace) == ["layer", "Assisted"]
    torch.testing.assert_close(trace["layer"].weights, model.layer.weights(draft(x)).float(), rtol=0, atol=1e-6)


class Joined(nn.Module):
    """Heads joined with the batch, by the fused kernel or by hand."""

    def __init__(self, **attributes):
        super().__init__()
        vars(self).update(attributes)

    def forward(self, x, fused):
        if fused:
            return F.scaled_dot_product_attention(x, x, x)
        return torch.bmm(torch.softmax(x @ x.transpose(1, 2) / 11**0.5, -1), x)


@pytest.mark.parametrize("fused", [True, False])
def test_heads_that_are_joined_with_the_batch(fused):
    x = torch.randn(6, 7, 11)
    expected = plain_weights(x.view(2, 3, 7, 11), x.view(2, 3, 7, 11)).float()
    for model, options in (
        (Joined(num_heads=3), {}),
        (Joined(heads=3), {}),
        (Joined(), {"num_heads": 3}),
        (Joined(num_heads=2), {"num_heads": {"Joined": 3}}),
    ):
        with saccade.record(model, **options) as trace:
            model(x, fused)
        torch.testing.assert_close(trace["Joined"].weights, expected, rtol=0, atol=1e-6)
    for model in (Joined(), Joined(num_heads=4)):
        with saccade.record(model) as trace:
            model(x, fused)
        assert trace["Joined"].shape == (6, 1, 7, 7)
    with pytest.raises(ValueError, match=r"num_heads=4: .*'Joined' has 6 entries"), saccade.record(model, num_heads=4):
        model(x, fused)
    with pytest.raises(ValueError, match="num_heads must be 1 or more"):
        saccade.record(model, num_heads=0)


def test_a_model_can_be_copied_while_it_is_recorded():
    model = SigmoidAttention()
    with saccade.record(model) as trace:
        twin = copy.deepcopy(model)
        twin(torch.randn(2, 7, 12))
    assert trace.missing == []


def test_runs_have_what_is_missing_from_the_whole():
    model = nn.MultiheadAttention(6, 2, batch_first=True)
    x = torch.randn(2, 5, 6)
    with saccade.record(model) as trace:
        model(x, x, x)
        model(x, x, x)
    trace.missing = [("somewhere", "a reason")]
    assert [run.missing for run in trace.runs] == [trace.missing] * 2


class SquaredAttention(nn.Module):
    """Its weights are not those of a softmax."""

    def forward(self, x):
        weights = (x @ x.mT).square()
        return weights / weights.sum(-1, keepdim=True) @ x


class OwnSquaredAttention(SquaredAttention):
    pass


class ForwardedSquaredAttention(SquaredAttention):
    def forward(self, x):
        return super().forward(x)


@pytest.mark.parametrize("kinds", [[SquaredAttention], [OwnSquaredAttention, SquaredAttention], [SquaredAttention] * 2])
def test_classes_are_as_before(kinds):
    model, x = nn.Sequential(*(kind() for kind in kinds)), torch.randn(2, 3, 5)
    before = [vars(kind).get("forward") for kind in kinds]
    wanted = model(x)
    for _ in range(2):
        with pytest.warns(UserWarning, match="not in the trace"), saccade.record(model) as trace:
            assert torch.equal(model(x), wanted)
        assert [each.path for each in trace.missing] == [str(number) for number in range(len(kinds))]
        assert [vars(kind).get("forward") for kind in kinds] == before


def test_a_forward_of_its_own_and_one_that_calls_another():
    model, x = nn.Sequential(SquaredAttention(), ForwardedSquaredAttention()), torch.randn(2, 3, 5)
    first = model[0]
    first.forward = functools.partial(SquaredAttention.forward, first)
    with pytest.warns(UserWarning, match="not in the trace"), saccade.record(model) as trace:
        model(x)
    assert [each.path for each in trace.missing] == ["0", "1"]
    assert not first._forward_pre_hooks


class StaticAttention(nn.Module):
    @staticmethod
    def forward(x):
        return x.relu()


def test_a_forward_that_does_not_take_the_module():
    model, x = nn.Sequential(StaticAttention()), torch.randn(2, 3, 5)
    with pytest.warns(UserWarning, match="not in the trace"), saccade.record(model) as trace:
        assert torch.equal(model(x), x.relu())
    assert [each.path for each in trace.missing] == ["0"]


def test_a_class_that_is_changed_while_it_is_recorded(monkeypatch):
    model = nn.Sequential(SquaredAttention())
    monkeypatch.setattr(SquaredAttention, "forward", SquaredAttention.forward)
    with saccade.record(model):
        SquaredAttention.forward = new = lambda self, x: x
    assert SquaredAttention.forward is new


def test_a_class_whose_forward_was_replaced_since(monkeypatch):
    model, x = nn.Sequential(SquaredAttention()), torch.randn(2, 3, 5)
    with pytest.warns(UserWarning, match="not in the trace"), saccade.record(model):
        model(x)
    monkeypatch.setattr(SquaredAttention, "forward", lambda self, x: 2 * x)
    with pytest.warns(UserWarning, match="not in the trace"), saccade.record(model) as trace:
        assert torch.equal(model(x), 2 * x)
    assert [each.path for each in trace.missing] == ["0"]


def test_other_modules_of_the_class_are_not_missing():
    model, other, x = nn.Sequential(SquaredAttention()), SquaredAttention(), torch.randn(2, 3, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with saccade.record(model) as trace:
            other(x)
            with saccade.record(other) as inner:
                pass
    assert (trace.missing, inner.missing) == ([], [])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with saccade.record(model) as trace, saccade.record(other) as inner:
            model(x)
            other(x)
    assert [each.path for each in trace.missing] == ["0"]
    assert [each.path for each in inner.missing] == ["SquaredAttention"]
    assert len(told) == 2


def _missing(model, x):
    """What is missing from the recording of a run."""
    with pytest.warns(UserWarning, match="not in the trace"), saccade.record(model) as trace:
        model(x)
    return [each.path for each in trace.missing]


@pytest.mark.parametrize("order", ["inner ends first", "outer ends first"])
def test_recordings_that_overlap(order):
    model, x = nn.Sequential(SquaredAttention(), SquaredAttention()), torch.randn(2, 3, 5)
    first, second = saccade.record(model), saccade.record(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first.__enter__()
        second.__enter__()
        model[0](x)
        one, other = (second, first) if order == "inner ends first" else (first, second)
        one.__exit__(None, None, None)
        model[1](x)
        other.__exit__(None, None, None)
    assert [each.path for each in one.trace.missing] == ["0"]
    assert [each.path for each in other.trace.missing] == ["0", "1"]
    assert not any(module._forward_pre_hooks for module in model)


@pytest.mark.filterwarnings("ignore:Attention that is not in the trace")
def test_other_threads_run_the_modules_too():
    model, x = nn.Sequential(SquaredAttention(), SquaredAttention()), torch.randn(2, 3, 5)
    wanted = model(x)
    with ThreadPoolExecutor(1) as other, saccade.record(model) as trace:
        assert torch.equal(other.submit(model, x).result(), wanted)
        assert other.submit(_missing, model, x).result() == ["0", "1"]
        model[1](x)
    assert [each.path for each in trace.missing] == ["1"]
    assert not any(module._forward_pre_hooks for module in model)


def test_a_replica_runs_as_itself():
    model, x = nn.Sequential(SquaredAttention()), torch.randn(2, 3, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with saccade.record(model):
            replica = model[0]._replicate_for_data_parallel()  # a copy of its attributes
            replica.forward = lambda x: 3 * x
            assert torch.equal(replica(x), 3 * x)


class ChoosingAttention(nn.Module):
    """Attends in one of several ways, or not at all."""

    def __init__(self):
        super().__init__()
        self.way = "kernel"

    def forward(self, x):
        if self.way == "skipped":
            return x
        return F.scaled_dot_product_attention(x, x, x) if self.way == "kernel" else SquaredAttention.forward(self, x)


class ChoosingLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = ChoosingAttention()

    def forward(self, x):
        return x if self.attention.way == "skipped" else self.attention(x)


def _missed(model, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with saccade.record(model) as trace:
            model(x)
    assert not any(layer.attention._forward_pre_hooks for layer in model)
    return [each.path for each in trace.missing]


def test_alike_modules_are_watched_together_once_all_were_recorded():
    model, x = nn.Sequential(*(ChoosingLayer() for _ in range(3))).eval(), torch.randn(2, 3, 5, 7)
    for _ in range(2):
        assert _missed(model, x) == []
    with saccade.record(model):
        assert [len(layer.attention._forward_pre_hooks) for layer in model] == [1, 0, 1]
    model[1].attention.way = "unseen"
    assert _missed(model, x) == ["1.attention"]
    assert _missed(model, x) == ["1.attention"]
    model[1].attention.way = "kernel"
    assert _missed(model, x) == []
    for layer in model:
        layer.attention.way = "unseen"
    assert _missed(model, x) == ["0.attention", "1.attention", "2.attention"]


def test_alike_modules_that_do_not_run_are_not_missing():
    model, x = nn.ModuleDict({"one": ChoosingLayer(), "two": ChoosingLayer()}).eval(), torch.randn(2, 3, 5, 7)
    for run in (["one", "two"], ["two"], ["one"], []):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with saccade.record(model) as trace:
                for name in run:
                    model[name](x)
        assert trace.paths == [f"{name}.attention" for name in run]


def test_a_skipped_layer_is_told_once_and_only_outside_of_training():
    model, x = nn.Sequential(*(ChoosingLayer() for _ in range(3))).eval(), torch.randn(2, 3, 5, 7)
    assert _missed(model, x) == []
    model[1].attention.way = "skipped"
    told = r"1.attention \(ChoosingAttention was recorded before, but not this time"
    with pytest.warns(UserWarning, match=told), saccade.record(model):
        model(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with saccade.record(model):
            model(x)
        model[1].attention.way = "kernel"
        for way in ("kernel", "skipped"):
            model.train()[1].attention.way = way
            with saccade.record(model):
                model(x)


def test_first_and_last_layers_are_watched_themselves():
    model, x = nn.Sequential(*(ChoosingLayer() for _ in range(4))).eval(), torch.randn(2, 3, 5, 7)
    ways = {
        "kernel kernel skipped skipped": [],  # an early exit
        "skipped kernel kernel kernel": [],
        "skipped unseen unseen unseen": ["1.attention", "2.attention", "3.attention"],
        "kernel kernel kernel unseen": ["3.attention"],
        "unseen skipped skipped skipped": ["0.attention"],
    }
    for each, wanted in ways.items():
        for layer in model:
            layer.attention.way = "kernel"
        assert _missed(model, x) == []
        for layer, way in zip(model, each.split(), strict=True):
            layer.attention.way = way
        assert _missed(model, x) == wanted


class OwnAttention(nn.MultiheadAttention):
    """What users call a class of their own."""


def test_fused_layers_with_attention_of_ones_own(monkeypatch):
    layer = nn.TransformerEncoderLayer(12, 4, 16, batch_first=True)
    layer.self_attn = OwnAttention(12, 4, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.randn(2, 5, 12)
    fused = []
    original = torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *args: fused.append(1) or original(*args))
    with torch.no_grad():
        expected = model(x)
        with saccade.record(model) as trace:
            assert torch.equal(model(x), expected)
    assert len(fused) == 4
    assert list(trace) == ["layers.0.self_attn", "layers.1.self_attn"]


def test_an_inference_mode_that_ends_inside():
    class Eager(nn.Module):
        def forward(self, x):
            return torch.softmax(x @ x.mT, -1) @ x

    model, x = Eager(), torch.randn(2, 5, 12)

    def leave_early():
        stack = contextlib.ExitStack()
        stack.enter_context(torch.inference_mode())
        with saccade.record(model) as trace:
            stack.close()
            model(x)
        return trace

    with pytest.warns(UserWarning, match="an inference mode that was entered before"):
        trace = leave_early()
    assert len(trace) == 0
    with saccade.record(model) as trace:
        model(x)
    assert len(trace) == 1
