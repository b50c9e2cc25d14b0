"""Less memory: some modules, some heads, reduced, in half precision, on disk."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from tests.interpretation.recording.models import Eager, Layer, Stack


@pytest.fixture
def x():
    return torch.randn(2, 7, 12)


def run(model, x, **options):
    with saccade.record(model, **options) as trace:
        model(x)
    return trace


def models():
    encoder = nn.TransformerEncoderLayer(12, 3, 17, batch_first=True, dropout=0.0)
    return {"fused": Layer(), "eager": Eager("method"), "projected": encoder}


@pytest.mark.parametrize("name", list(models()))
def test_heads(name, x):
    model = models()[name]
    whole, some = (next(iter(run(model, x, heads=heads).values())) for heads in (None, [2, 0]))
    assert some.heads == 2
    torch.testing.assert_close(some.weights, whole.weights[:, [2, 0]], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize("block", [1, 1 << 24])
def test_reductions(name, x, block, monkeypatch):
    monkeypatch.setattr("saccade.interpretation.recording.blocks.BLOCK", block)
    model = models()[name]
    call = {reduce: next(iter(run(model, x, reduce=reduce).values())) for reduce in (None, "mean", "max", ("top_k", 2))}
    whole = call[None].weights
    torch.testing.assert_close(call["mean"].weights, whole.mean(1, keepdim=True), rtol=0, atol=1e-6)
    torch.testing.assert_close(call["max"].weights, whole.amax(1, keepdim=True), rtol=0, atol=1e-6)
    top = call["top_k", 2].weights
    assert ((top > 0).sum(-1) == 2).all()
    kept = whole.sort(-1, descending=True)[0][..., :2]
    torch.testing.assert_close(top.sort(-1, descending=True)[0][..., :2], kept, rtol=0, atol=1e-6)
    assert {key: part.shape for key, part in call.items()} == {
        None: (2, 3, 7, 7),
        "mean": (2, 1, 7, 7),
        "max": (2, 1, 7, 7),
        ("top_k", 2): (2, 3, 7, 7),
    }


@pytest.mark.parametrize("name", list(models()))
def test_half_precision(name, x):
    model = models()[name]
    whole, half = (next(iter(run(model, x, dtype=dtype).values())) for dtype in (None, torch.float16))
    kept = half.kept.tensors
    assert {tensor.dtype for tensor in kept.values()} == {torch.float16}
    torch.testing.assert_close(half.weights.float(), whole.weights, rtol=0, atol=5e-3)


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize("reduce", [None, "mean", ("top_k", 3)])
def test_spill(name, x, reduce, tmp_path):
    model = models()[name]
    whole = next(iter(run(model, x, reduce=reduce).values()))
    spilled = next(iter(run(model, x, reduce=reduce, spill=tmp_path / "there").values()))
    assert not spilled.kept.tensors
    assert len(list((tmp_path / "there").glob("*.safetensors"))) == 1
    assert spilled.shape == whole.shape
    assert torch.equal(spilled.weights, whole.weights)
    with pytest.raises(ValueError, match=r"already contains \.safetensors files"):
        saccade.record(model, spill=tmp_path / "there")


def test_a_mask_that_changes_in_inference_mode_is_written_each_time(tmp_path):
    class Growing(nn.Module):
        def forward(self, x):
            mask = torch.zeros(x.shape[1], x.shape[1], dtype=torch.bool)
            mask[:, 0] = True
            first = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
            mask[:, 1] = True
            return first + F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    model = Growing()
    with torch.inference_mode(), saccade.record(model, spill=tmp_path) as trace:
        model(torch.randn(1, 3, 5))
    seen = [(call.weights > 0).sum().item() for call in trace.values()]
    assert seen == [3, 6]


def test_spilled_layers_share_their_mask(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Layer(), Layer()

        def forward(self, x):
            mask = torch.ones(7, 7, dtype=torch.bool).tril()
            return self.second(self.first(x, attn_mask=mask), attn_mask=mask)

    model, x = Two(), torch.randn(2, 7, 12)
    trace = run(model, x, spill=tmp_path)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.safetensors"))]
    assert sizes[0] - sizes[1] >= 49
    expected = run(model, x)
    assert torch.equal(trace["second"].weights, expected["second"].weights)


def test_keep(x):
    assert list(run(Stack(), x, keep="second")) == ["second"]
    assert list(run(Stack(), x, keep=["f*", "none"])) == ["first", "first#1"]
    with pytest.raises(KeyError, match="keep= matches none of first, second"):
        run(Stack(), x, keep="third")["first"]


def test_bad_options(x):
    for options, message in (
        ({"reduce": "median"}, "reduce must be .*'median'"),
        ({"reduce": ("top_k", 0)}, "k >= 1"),
        ({"dtype": torch.int8}, "dtype must be"),
    ):
        with pytest.raises(ValueError, match=message):
            saccade.record(Layer(), **options)
    with pytest.raises(ValueError, match=r"heads=\[3\]: 'Layer' has 3 heads, 0 to 2"):
        run(Layer(), x, heads=[3])


def test_four_thousand_tokens():
    layer = Layer(dim=8, heads=2)
    with torch.no_grad(), saccade.record(layer, reduce=("top_k", 5)) as trace:
        layer(torch.randn(1, 4096, 8), is_causal=True)
    call = trace["Layer"]
    assert call.shape == (1, 2, 4096, 4096)
    assert sum(tensor.numel() for tensor in call.kept.tensors.values()) == 2 * 2 * 4096 * 5


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda trace: pickle.loads(pickle.dumps(trace))])
def test_copies_and_pickles_of_a_trace(copied, x):
    class Masked(nn.Module):
        def forward(self, x, mask):
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    model, mask = Masked(), torch.zeros(7, 7)
    with saccade.record(model) as trace:
        model(x, mask)
    other = copied(trace)
    assert torch.equal(other["Masked"].weights, trace["Masked"].weights)
    mask += 1
    with pytest.raises(RuntimeError, match="mask of 'Masked' was changed in place"):
        _ = copied(trace)["Masked"].weights


@pytest.mark.parametrize("name", list(models()))
def test_weights_are_in_single_precision_inside_autocast(name, x):
    model = models()[name]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16), saccade.record(model) as trace:
        model(x)
        inside = next(iter(trace.values())).weights
    outside = next(iter(trace.values())).weights
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)
    reference = next(iter(run(model, x).values())).weights
    torch.testing.assert_close(inside, reference, rtol=0, atol=5e-3)
