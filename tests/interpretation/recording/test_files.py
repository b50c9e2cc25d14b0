"""Traces in folders and as tables."""

import json
import sys

import pytest
import torch
from torch import nn

import saccade
from saccade.artifacts.files import ArtifactError
from tests.interpretation.recording.models import Eager, Layer, Stack


@pytest.fixture
def x():
    return torch.randn(2, 7, 12)


class Everything(nn.Module):
    """One module of each kind."""

    def __init__(self):
        super().__init__()
        self.fused, self.eager = Layer(), Eager("functional")
        self.projected = nn.MultiheadAttention(12, 3, batch_first=True)
        self.structured = saccade.Attention(
            score=saccade.scores.ScaledDotScore(), selection=saccade.selections.LinearChain()
        )

    def forward(self, x):
        x = self.projected(self.eager(self.fused(x)), x, x, need_weights=False)[0]
        return self.structured(x, x).context


def equal(found, expected):
    assert list(found) == list(expected)
    assert found.missing == expected.missing
    for name, call in expected.items():
        assert torch.equal(found[name].weights, call.weights)
        assert (found[name].run, found[name].shape) == (call.run, call.shape)
        assert found[name].key_positions == call.key_positions
        assert found[name].query_positions == call.query_positions


def test_a_trace_that_was_saved_is_the_same(x, tmp_path):
    model = Everything().eval()
    with torch.no_grad(), saccade.record(model) as trace:
        model(x)
        model(x[:1])
    trace.save(tmp_path / "trace")
    equal(saccade.Trace.load(tmp_path / "trace"), trace)
    with pytest.raises(ValueError, match="already contains"):
        trace.save(tmp_path / "trace")
    saccade.Trace.load(tmp_path / "trace").save(tmp_path / "again")
    equal(saccade.Trace.load(tmp_path / "again"), trace)


def test_values_are_not_saved(x, tmp_path):
    with torch.no_grad(), saccade.record(model := Everything().eval()) as trace:
        model(x)
    assert trace["projected"].weights.shape == (2, 3, 7, 7)
    trace.save(tmp_path)
    calls = {call["path"]: call for call in json.loads((tmp_path / "trace.json").read_text())["calls"]}
    assert set(calls["projected"]["files"]) == {"query", "key", "query_weight", "key_weight", "query_bias", "key_bias"}


@pytest.mark.parametrize("reduce", [None, "mean", ("top_k", 3)])
def test_a_folder_that_was_spilled_to(x, tmp_path, reduce):
    model = Everything().eval()
    with torch.no_grad():
        with saccade.record(model, reduce=reduce) as expected:
            model(x)
        with saccade.record(model, reduce=reduce, spill=tmp_path) as trace:
            model(x)
    loaded = saccade.Trace.load(tmp_path)
    equal(loaded, trace)
    for name, call in expected.items():
        torch.testing.assert_close(loaded[name].weights, call.weights, rtol=0, atol=1e-6)


def test_layers_that_share_a_mask_share_its_file(x, tmp_path):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Layer(), Layer()

        def forward(self, x, mask):
            return self.second(self.first(x, attn_mask=mask), attn_mask=mask)

    model = Masked()
    with torch.no_grad(), saccade.record(model) as trace:
        model(x, torch.zeros(7, 7))
    trace.save(tmp_path)
    first, second = json.loads((tmp_path / "trace.json").read_text())["calls"]
    assert first["files"]["mask"] == second["files"]["mask"]
    assert first["files"]["key"] != second["files"]["key"]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"calls": 3},
        {"missing": [["a"]]},
        {"path": 3},
        {"files": {"query": "../other.safetensors"}},
        {"files": {"query": "000077.safetensors"}},
        {"files": {"query": "000000.safetensors", "key": "000000.safetensors", "other": "000000.safetensors"}},
        {"recipe": {"kind": "Flex"}},
        {"recipe": {"kind": "ScaledDot", "scale": "1", "causal": False}},
        {"recipe": {"kind": "ScaledDot", "scale": None, "causal": False, "more": 1}},
        {"recipe": {"kind": "Given"}},
        {"files": {}},
        {"run": -1},
        {"query": "0"},
        {"query": -1},
    ],
)
def test_damaged_folders_are_refused(x, tmp_path, change):
    model = Layer()
    with torch.no_grad(), saccade.record(model) as trace:
        model(x)
    trace.save(tmp_path)
    index = json.loads((tmp_path / "trace.json").read_text())
    (index if change.keys() <= index.keys() else index["calls"][0]).update(change)
    (tmp_path / "trace.json").write_text(json.dumps(index))
    with pytest.raises(ArtifactError, match=r"trace\.json"):
        saccade.Trace.load(tmp_path)


def test_a_folder_without_a_trace(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"trace\.json is missing"):
        saccade.Trace.load(tmp_path)


def test_a_table(x):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    model = Stack()
    with torch.no_grad(), saccade.record(model) as trace:
        model(x)
    frame = trace.to_frame("second", least=0.1)
    weights = trace["second"].weights
    assert list(frame.columns) == ["call", "path", "run", "batch", "head", "query", "key", "weight"]
    assert len(frame) == int((weights > 0.1).sum()) > 0
    row = frame.iloc[len(frame) // 2]
    assert row.weight == pytest.approx(float(weights[row.batch, row["head"], row["query"], row.key]))
    assert set(trace.to_frame()["call"]) == {"first", "first#1", "second"}
    assert isinstance(saccade.Trace().to_frame(), pandas.DataFrame)


def test_a_table_without_pandas(x, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        saccade.Trace().to_frame()
