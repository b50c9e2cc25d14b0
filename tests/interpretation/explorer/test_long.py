"""Maps of which only the largest weights are kept: long inputs, drawn in tiles."""

import re

import pytest
import torch

from saccade.interpretation.explorer import Item, Map, TextAxis, TopWeights, render, write_page
from saccade.interpretation.explorer.packing import pack, unpack_top
from tests.interpretation.explorer.examples import SOURCE, TARGET, softmax

TOKENS = 3001


def top_of(weights, k: int) -> TopWeights:
    values, places = weights.topk(k, dim=-1)
    return TopWeights(values=values, places=places, keys=weights.shape[-1])


def long_item(tokens: int = TOKENS, *, heads: int = 2, k: int = 5) -> Item:
    """Every token attends to its neighbours, or the first and last ones to those at the other end."""
    places = (torch.arange(tokens)[:, None] + torch.arange(k) - k // 2) % tokens
    values = 0.5 + softmax(heads, tokens, k, seed=2)
    axis = TextAxis(pieces=[f"t{number}" for number in range(tokens)])
    maps = [
        Map(
            name=f"layer.{layer}",
            weights=TopWeights(values=values, places=places.expand_as(values), keys=tokens),
            queries=axis,
            keys=axis,
            layer=layer,
        )
        for layer in range(2)
    ]
    return Item(title="long", maps=maps)


@pytest.mark.parametrize("levels", [65535, 255, 7])
def test_kept_weights_are_stored_with_their_columns(levels, monkeypatch) -> None:
    monkeypatch.setattr("saccade.interpretation.explorer.packing.LADDER", (levels,))
    top = top_of(softmax(3, 11, 70_001, sharp=4.0), 7)
    packed = pack([top], most_bytes=10**9)
    for head, block in zip(top, packed.blocks, strict=True):
        values, places = unpack_top(block, levels, 11, 7)
        expected, order = head.places.sort(dim=-1)
        assert torch.equal(places, expected)
        assert ((values - head.values.gather(-1, order)).abs() <= head.values.amax() / levels).all()


def test_parts_and_dense_weights() -> None:
    weights = softmax(2, 5, 13)
    top = top_of(weights, 3)
    dense = top.dense()
    assert torch.equal(dense, torch.where(weights >= weights.topk(3).values[..., -1:], weights, 0.0))
    part = top.chosen([0, 3], [2, 3, 5, 7, 11])
    assert part.shape == (2, 2, 5)
    assert torch.equal(part.dense(), dense[:, [0, 3]][:, :, [2, 3, 5, 7, 11]])


def test_wrong_places_are_refused() -> None:
    with pytest.raises(ValueError, match="columns from 0 to 4, got 0 to 5"):
        TopWeights(values=torch.ones(1, 1, 2), places=torch.tensor([[[0, 5]]]), keys=5)
    with pytest.raises(ValueError, match=r"both be \(heads, queries, k\)"):
        TopWeights(values=torch.ones(1, 2, 2), places=torch.zeros(1, 1, 2), keys=5)


def test_text_and_data_show_them_too() -> None:
    item = Item(title="a", maps=[Map(name="m", weights=top_of(softmax(1, 5, 7), 2), queries=TARGET, keys=SOURCE)])
    assert b"gleichen" in render([item], "text", width=70)
    assert b'"weights"' in render([item], "json")


def sheet(page) -> str:
    return page.eval_on_selector("canvas.sheet", "canvas => canvas.toDataURL()")


@pytest.mark.parametrize(
    "fragment", ["units=pieces", "units=words", "show=0.0.max&units=words&special=false", "scale=row&zoom=9"]
)
def test_kept_weights_are_drawn_like_others(visit, tmp_path, fragment) -> None:
    """The same picture as from all weights, of which the others are zero."""
    top = top_of(softmax(3, 5, 7, seed=4), 3)
    drawn = []
    for name, weights in (("top", top), ("dense", top.dense())):
        maps = [Map(name="m", weights=weights, queries=TARGET, keys=SOURCE)]
        write_page(tmp_path / f"{name}.html", [Item(title="a", maps=maps)], title="a")
        drawn.append(sheet(visit(tmp_path / f"{name}.html", fragment)))
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) > 3000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "long.html"
    write_page(path, [long_item()], title="long")
    return path


@pytest.mark.parametrize("zoom", [1, 128])
def test_every_cell_stands_where_it_is_read(visit, place, zoom) -> None:
    """Under the pointer a cell is coloured if its weight is kept, also at the edges of tiles."""
    dense = long_item().maps[1].weights.dense()[0]
    page = visit(place, f"show=0.1.0&zoom={zoom}&scale=row")
    page.eval_on_selector(
        ".frame",
        """box => {
            box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;
            box.scrollTop = (box.scrollHeight - box.clientHeight) / 2;
        }""",
    )
    page.wait_for_timeout(100)
    box = page.locator("canvas.sheet").bounding_box()
    # Along the diagonal, and beside it.
    points = [(box["width"] * (0.3 + 0.02 * n), box["height"] * (0.3 + 0.02 * n) - n % 3 * 60) for n in range(30)]
    reds = page.eval_on_selector(
        "canvas.sheet",
        """(canvas, points) => {
            const context = canvas.getContext('2d');
            const red = (x, y) => context.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data[0];
            return points.map(([x, y]) => [red(x - 3, y - 3), red(x + 3, y - 3), red(x - 3, y + 3), red(x + 3, y + 3)]);
        }""",
        points,
    )
    seen = {True: 0, False: 0}
    for (x, y), around in zip(points, reds, strict=True):
        page.mouse.move(box["x"] + x, box["y"] + y)
        said = page.inner_text("[role=status]")
        found = re.search(r"row (\d+), column (\d+)", said)
        assert found is not None
        weight = float(dense[int(found[1]), int(found[2])])
        assert ("not kept" in said) == (weight == 0)
        seen[weight > 0] += 1
        lit = {red < 215 for red in around}
        if zoom == 128 and len(lit) == 1:  # inside a cell, and not at its edge
            assert lit == {weight > 0}, found[0]
    assert zoom != 128 or min(seen.values()) > 3
    page.mouse.move(0, 0)


def test_long_maps_stay_smooth(chromium, place) -> None:
    session = chromium.new_browser_cdp_session()

    def seconds() -> float:
        return sum(process["cpuTime"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"])

    page = chromium.new_page()
    page.goto("about:blank")
    before = seconds()
    page.goto(place.as_uri())
    page.wait_for_selector("[data-ready=true]", timeout=60_000)
    assert seconds() - before < 3.0
    before = seconds()
    for _ in range(10):
        page.keyboard.press("ArrowDown")
    page.wait_for_selector("[role=status] :text-is('row 9, column 0')")
    for _ in range(10):
        page.keyboard.press("+")
    for step in range(10):
        page.eval_on_selector(".frame", "(box, step) => { box.scrollTop = step * 997; }", step)
    page.wait_for_timeout(50)
    assert seconds() - before < 30 * 0.1
    page.keyboard.press("3" if page.locator("[role=tab]").count() > 2 else "2")
    page.wait_for_selector(".small >> nth=3 >> canvas[data-drawn=true]", timeout=60_000)
    page.close()


def test_views_that_list_every_token_leave_very_long_inputs_out(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [long_item(6007, heads=1, k=2)], title="long")
    page = visit(tmp_path / "page.html")
    assert page.locator("[role=tab]:not([disabled])").all_inner_texts() == ["Heat map", "All heads"]
