"""512 tokens, 12 layers, 12 heads: small enough to send, quick to open."""

import pytest
import torch

from saccade.interpretation.explorer import Item, Map, TextAxis, write_page

TOKENS, LAYERS, HEADS = 512, 12, 12
MOST_BYTES = 25_000_000
MOST_SECONDS = 3.0


def attention(sharp: float) -> Item:
    """Weights as models have them: the nearer the more, some on the first token, and noise as sharp as asked."""
    generator = torch.Generator().manual_seed(0)
    place = torch.arange(TOKENS)
    distance = (place[:, None] - place).abs()
    axis = TextAxis(pieces=["[CLS]", *(f"token{number}" for number in range(1, TOKENS))], special=[0])
    maps = []
    for layer in range(LAYERS):
        scores = sharp * torch.randn(HEADS, TOKENS, TOKENS, generator=generator)
        scores -= distance * torch.linspace(0, 0.02, HEADS)[:, None, None]
        scores[..., 0] += 0.3 * layer
        maps.append(Map(name=f"layer.{layer}", weights=scores.softmax(-1), queries=axis, keys=axis, layer=layer))
    return Item(title="long", maps=maps)


@pytest.mark.slow
@pytest.mark.parametrize("sharp", [4.0, 1.0], ids=["peaked", "diffuse"])
def test_long_inputs_open_quickly(chromium, tmp_path, sharp) -> None:
    path = tmp_path / "long.html"
    write_page(path, [attention(sharp)], title="long")
    assert path.stat().st_size < MOST_BYTES
    session = chromium.new_browser_cdp_session()

    def seconds() -> float:
        """Of computing, in all of Chromium's processes: those of the clock grow with whatever else the machine does."""
        return sum(process["cpuTime"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"])

    page = chromium.new_page()
    page.goto("about:blank")
    before = seconds()
    page.goto(path.as_uri())
    page.wait_for_selector("[data-ready=true]", timeout=60_000)
    assert seconds() - before < MOST_SECONDS
    assert "Weights are stored in" in page.inner_text("footer")
    # It answers at once: a move of the cursor costs less than a tenth of a second.
    before = seconds()
    for _ in range(20):
        page.keyboard.press("ArrowDown")
    page.wait_for_selector("[role=status] :text-is('row 19, column 0')")
    assert seconds() - before < 20 * 0.1
    page.keyboard.press("3")
    page.wait_for_selector(".small >> nth=143 >> canvas[data-drawn=true]", timeout=60_000)
    page.close()
