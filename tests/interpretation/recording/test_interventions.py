"""Interventions on weights and on whole models."""

import pytest
import torch
from torch import nn

import saccade
from saccade.interpretation.recording import (
    Comparison,
    Trace,
    ablate_head,
    compare,
    knock_out,
    patch,
    record,
    uniform,
    use_weights,
)
from tests.interpretation.recording.models import Eager, Layer


def weights_and_mask():
    weights = torch.rand(2, 3, 4, 5).softmax(-1)
    mask = torch.ones(2, 3, 4, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    return weights.masked_fill(~mask, 0.0), mask


def test_ablated_heads_read_nothing() -> None:
    weights, mask = weights_and_mask()
    found = ablate_head(2, 0)(weights, mask, range(4))
    assert (found[:, [0, 2]] == 0).all()
    assert torch.equal(found[:, 1], weights[:, 1])
    with pytest.raises(ValueError, match="head 3 does not exist: there are 3 heads, 0 to 2"):
        ablate_head(3)(weights, mask, range(4))


def test_uniform_weights_keep_the_total() -> None:
    weights, mask = weights_and_mask()
    found = uniform()(weights, mask, range(4))
    torch.testing.assert_close(found.sum(-1), weights.sum(-1))
    assert (found[1, ..., 3:] == 0).all()
    torch.testing.assert_close(found[1, ..., 0], found[1, ..., 2])


def test_knocked_out_positions() -> None:
    weights, mask = weights_and_mask()
    found = knock_out([1, 9])(weights, mask, range(4))
    assert (found[..., 1] == 0).all()
    torch.testing.assert_close(found.sum(-1), weights.sum(-1))
    torch.testing.assert_close(found[..., 0] * weights[..., 2], found[..., 2] * weights[..., 0])
    less = knock_out([1], rescale=False)(weights, mask, range(4))
    assert torch.equal(less[..., 0], weights[..., 0])
    assert (knock_out(range(5))(weights, mask, range(4)) == 0).all()  # and not NaN
    with pytest.raises(ValueError, match=r"count from 0, got \[-1\]"):
        knock_out([-1])


def test_weights_that_do_not_fit() -> None:
    weights, allowed = weights_and_mask()
    with pytest.raises(ValueError, match=r"weights \(2, 3, 4, 5\) do not fit queries 3 to 6"):
        use_weights(weights)(weights, allowed, range(3, 7))


class Named(nn.Module):
    """Attention that returns its output under a name."""

    def __init__(self, inner):
        super().__init__()
        self.layers = nn.ModuleList([inner, Layer()])

    def forward(self, x):
        first, second = self.layers
        found = first(x, x, x, need_weights=False)[0] if isinstance(first, nn.MultiheadAttention) else first(x)
        found = getattr(found, "context", found)
        return {"states": second(found), "first": (found,), "count": 3}


INNER = {
    "fused": Layer,
    "by hand": lambda: Eager("method"),
    "torch": lambda: nn.MultiheadAttention(12, 3, batch_first=True),
    "saccade": lambda: saccade.MultiHead(
        attention=saccade.Attention(score=saccade.scores.ScaledDotScore()), num_heads=3, query_dim=12
    ),
}


@pytest.mark.parametrize("kind", list(INNER))
def test_changes_of_the_output_are_told(kind) -> None:
    model, x = Named(INNER[kind]()).eval(), torch.randn(2, 7, 12)
    found = compare(model, lambda: model(x), {"layers.0": ablate_head(1)})
    assert (found.trace["layers.0"].weights[:, 1] == 0).all()
    assert set(found.differences) == {"states", "first[0]"}
    expected = (found.after["states"] - found.before["states"]).norm() / found.before["states"].norm()
    assert found.differences["states"] == pytest.approx(float(expected), rel=1e-4)
    assert min(found.differences.values()) > 0
    assert "states: moved by " in str(found)
    same = compare(model, lambda: model(x), {"layers.0": lambda weights, mask, steps: weights})
    assert max(same.differences.values()) < 1e-6  # a change keeps PyTorch off its fast paths


@pytest.mark.parametrize("kind", list(INNER))
def test_weights_of_another_trace(kind) -> None:
    model, x, other = Named(INNER[kind]()).eval(), torch.randn(2, 7, 12), torch.randn(2, 7, 12)
    with torch.no_grad(), saccade.record(model) as trace:
        model(other)
    found = compare(model, lambda: model(x), patch(trace, "layers.0"))
    torch.testing.assert_close(found.trace["layers.0"].weights, trace["layers.0"].weights, rtol=0, atol=1e-6)
    assert found.differences["states"] > 0
    assert list(patch(trace)) == trace.paths
    with pytest.raises(ValueError, match=r"keep='layers\.7' matches none of layers\.0, layers\.1"):
        patch(trace, "layers.7")


def test_bad_arguments() -> None:
    model = nn.MultiheadAttention(12, 4)
    with pytest.raises(ValueError, match=r"one or more heads: ablate_head\(3\)"):
        ablate_head()
    with pytest.raises(TypeError, match=r"a list of positions: knock_out\(\[3\]\)"):
        knock_out(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"change\['\*'\] must be a function of .* but uniform takes other arguments"):
        record(model, change={"*": uniform})
    with pytest.raises(TypeError, match="a function that runs the model, such as lambda"):
        compare(model, torch.ones(2), {"*": uniform()})  # type: ignore[arg-type]
    x = torch.randn(5, 2, 12)
    with pytest.raises(ValueError, match="that are not finite"), record(model, change={"*": lambda w, m, s: w / 0}):
        model(x, x, x)


def test_whole_numbers_are_compared() -> None:
    found = Comparison(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 5, 4]), Trace())
    assert found.differences == {"output": 0.25}
    assert repr(found) == "Comparison of output"
    longer = Comparison(torch.tensor([[1, 2, 3]]), torch.tensor([[1, 5, 3, 4]]), Trace())
    assert longer.differences == {"output": 0.5}
