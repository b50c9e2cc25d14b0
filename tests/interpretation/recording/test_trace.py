import pytest
import torch
from torch import nn

import saccade
from tests.interpretation.recording.models import Eager, Layer, Stack


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList(nn.ModuleDict({"attention": nn.Sequential(Layer())}) for _ in range(3))

    def forward(self, x):
        for block in self.encoder:
            x = block["attention"](x)
        return x


@pytest.fixture
def trace():
    model = Deep()
    with saccade.record(model) as trace:
        model(torch.randn(2, 7, 12))
        model(torch.randn(2, 5, 12))
    return trace


def test_it_is_a_mapping_in_call_order(trace):
    names = [f"encoder.{i}.attention.0" for i in range(3)]
    assert list(trace) == [*names, *(f"{name}#1" for name in names)]
    assert len(trace) == 6
    assert trace.paths == names
    assert names[0] in trace
    assert "encoder.0" in trace  # as trace["encoder.0"] finds it
    assert "encoder.0#1" in trace
    for name in ("encoder", "decoder", "encoder.0#2", 0):  # three modules, none, too many calls, no name
        assert name not in trace
    assert [call.name for call in trace.values()] == list(trace)


def test_parts_of_names_and_patterns(trace):
    for name in ("encoder.1.attention", "1.attention.0", "encoder.1", "encoder.1.*"):
        assert trace[name].name == "encoder.1.attention.0"
    assert trace["encoder.1.attention#1"].shape == (2, 3, 5, 5)
    assert [call.name for call in trace.find("encoder.2")] == ["encoder.2.attention.0", "encoder.2.attention.0#1"]


def test_wrong_names_are_explained(trace):
    with pytest.raises(KeyError, match=r"'attention' matches 3 modules: encoder\.0\.attention\.0, "):
        trace["attention"]
    with pytest.raises(KeyError, match=r"under 'decoder', only under encoder\.0\.attention\.0"):
        trace["decoder"]
    with pytest.raises(KeyError, match="was called 2 times"):
        trace["encoder.1#2"]
    with saccade.record(nn.Linear(2, 3)) as empty:
        pass
    with pytest.raises(KeyError, match="No attention was recorded"):
        empty["attention"]


def test_weights_are_the_callers_own():
    model, x = Eager("method"), torch.randn(2, 7, 12)
    with saccade.record(model) as trace:
        model(x)
    trace["Eager"].weights.zero_()
    assert (trace["Eager"].weights.sum(-1) - 1).abs().max() < 1e-6


def test_edges_are_of_graphs_only(trace):
    with pytest.raises(ValueError, match="not attention along the edges"):
        _ = trace["encoder.0"].edges


def test_explore(tmp_path):
    model = Stack()
    with saccade.record(model) as trace:
        model(torch.randn(2, 4, 12))
    page = tmp_path / "page.html"
    trace.explore(page, queries=["Zwei", "alte", "<b>", "Katzen"], title="Cats & dogs", row=1)
    text = page.read_text()
    assert "Cats &amp; dogs" in text
    assert "<b>" not in text.partition("<body>")[2]
    with pytest.raises(ValueError, match=r"3 names of queries .* fit none of first \(4, 4\)"):
        trace.explore(page, queries=["a", "b", "c"])
    with pytest.raises(ValueError, match="row=2, but the batch of 'first' has 2 rows"):
        trace.explore(page, row=2)
    with pytest.raises(ValueError, match=r"keep='third' matches none of first, second\."):
        trace.explore(page, keep="third")


def test_nothing_to_explore(tmp_path):
    with saccade.record(Stack()) as trace:
        pass
    with pytest.raises(ValueError, match="No attention was recorded: the model did not run inside the block"):
        trace.explore(tmp_path / "page.html", queries=["a"])
    model = Stack()
    with saccade.record(model, keep="third") as trace:
        model(torch.randn(2, 4, 12))
    with pytest.raises(ValueError, match="keep= matches none of first, second"):
        trace.explore(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())
