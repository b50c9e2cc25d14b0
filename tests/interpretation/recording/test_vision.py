"""Image models."""

import json

import pytest
import torch

import saccade
from saccade.interpretation.explorer import ImageAxis
from tests.interpretation.explorer.examples import png
from tests.interpretation.recording.vision import GRID, HEADS, VisionTransformer, image


@pytest.fixture
def pair():
    fused, eager = VisionTransformer(fused=True).eval(), VisionTransformer(fused=False).eval()
    eager.load_state_dict(fused.state_dict())
    return fused, eager


@pytest.mark.parametrize("grad", [False, True])
def test_a_vision_transformer(pair, grad):
    fused, eager = pair
    x = image()
    with torch.set_grad_enabled(grad):
        with saccade.record(fused) as trace:
            output = fused(x)
        assert torch.equal(output, fused(x))
        with saccade.record(eager) as by_hand:
            torch.testing.assert_close(eager(x), output, rtol=0, atol=1e-5)
    assert list(trace) == list(by_hand) == [f"blocks.{number}.attn" for number in range(3)]
    tokens = 1 + GRID[0] * GRID[1]
    for block, call, other in zip(eager.blocks, trace.values(), by_hand.values(), strict=True):
        assert call.shape == (2, HEADS, tokens, tokens)
        torch.testing.assert_close(call.weights, block.attn.weights.detach(), rtol=0, atol=1e-5)
        assert torch.equal(other.weights, block.attn.weights)


def test_dropout_is_the_same_and_left_out(pair):
    fused, eager = pair
    x = image()
    eager(x)
    fused.train()
    state = torch.get_rng_state()
    with saccade.record(fused) as trace:
        output = fused(x)
    torch.set_rng_state(state)
    assert torch.equal(output, fused(x))
    torch.testing.assert_close(trace["blocks.0"].weights, eager.blocks[0].attn.weights.detach(), rtol=0, atol=1e-5)


def test_the_page_has_the_picture(pair, tmp_path):
    with torch.no_grad(), saccade.record(pair[0]) as trace:
        pair[0](image())
    patches = ImageAxis(png=png(40, 24), grid=GRID, leading=["[CLS]"])
    trace.explore(tmp_path / "page.html", queries=patches, row=1)
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    (axis,) = data["axes"]
    assert (axis["kind"], axis["grid"], axis["leading"]) == ("image", [3, 5], ["[CLS]"])
    assert [each["name"] for each in data["items"][0]["maps"]] == list(trace)
