"""Each view in a real browser."""

import dataclasses

import pytest
import torch

import saccade
from saccade.interpretation.explorer import ImageAxis, Item, write_page
from tests.interpretation.explorer.examples import caption, png, translation
from tests.interpretation.recording.vision import GRID, VisionTransformer, image


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    write_page(path, [translation(), translation("second", seed=5)], title="Two models")
    return path


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "picture.html"
    write_page(path, [caption()], title="A picture")
    return path


def number(weight) -> str:
    return f"{float(weight):.4f}".rstrip("0")


def pixels(page, selector: str) -> tuple[int, str]:
    """How many colours a canvas has, and what is on it."""
    return tuple(
        page.eval_on_selector(
            selector,
            """canvas => {
                const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                return [new Set(new Uint32Array(data.buffer)).size, canvas.toDataURL()];
            }""",
        )
    )


def test_heat_map_reads_the_weight_under_the_cursor(visit, place) -> None:
    page = visit(place, "show=0.2.1&units=pieces&at=3.5")
    assert page.inner_text("[role=status] b") == number(translation().maps[2].weights[1, 3, 5])
    assert page.inner_text("[role=status] bdi >> nth=0") == "gleichen"
    assert page.inner_text("[role=status] bdi >> nth=1") == "."


def test_heat_map_is_drawn_and_follows_the_pointer(visit, place) -> None:
    page = visit(place, "show=0.2.1&units=pieces")
    assert pixels(page, "canvas.sheet")[0] > 20
    box = page.locator("canvas.sheet").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 160)
    shown = page.inner_text(".tip b")
    assert shown == page.inner_text("[role=status] b")
    assert shown in {number(weight) for weight in translation().maps[2].weights[1].flatten()}
    page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + 1)  # where nothing is drawn
    page.wait_for_selector(".tip", state="detached")


def test_heat_map_merges_words(visit, place) -> None:
    page = visit(place, "show=0.2.mean&units=words&at=2.1")
    mean = translation().maps[2].weights.mean(dim=0)
    assert page.inner_text("[role=status] bdi >> nth=0") == "sondergleichen"
    assert page.inner_text("[role=status] bdi >> nth=1") == "unbelievable"
    assert page.inner_text("[role=status] b") == number(mean[2:4, 1:4].sum() / 2)


def test_ribbons(visit, place) -> None:
    page = visit(place, "view=ribbons&show=0.2.1&units=pieces&threshold=0.05")
    weights = translation().maps[2].weights[1]
    assert page.locator(".ribbon").count() == int((weights >= 0.05).sum())
    assert page.locator(".token text").all_text_contents()[7:] == ["ein", "Glück", "sonder", "gleichen", "</s>"]
    left, right = (
        page.locator(f'.token[data-side="{side}"] >> nth=0').bounding_box()["x"] for side in ("key", "query")
    )
    assert left < right  # the input stands on the left
    assert (
        page.locator(".link").count() == 2 * 3 + 1
    )  # sondergleichen with unbelievable, piece by piece; Glück with luck
    widths = {
        (int(each.get_attribute("data-row")), int(each.get_attribute("data-col"))): float(
            each.get_attribute("stroke-width")
        )
        for each in page.locator(".ribbon").all()
    }
    widest = max(widths, key=widths.__getitem__)
    assert weights[widest] == weights.max()
    page.locator('.token[data-side="query"] >> nth=1').hover()
    assert page.locator(".ribbon.lit").count() == int((weights[1] >= 0.05).sum())
    assert page.inner_text("[role=status] b") == number(weights[1].max())


def test_all_heads_open_on_a_click(visit, place) -> None:
    page = visit(place, "view=heads")
    assert page.locator(".small").count() == 9
    page.wait_for_selector(".small >> nth=8 >> canvas[data-drawn=true]")
    first, second = (pixels(page, f".small >> nth={place} >> canvas") for place in (0, 1))
    assert first != second
    page.get_by_label("Open encoder.1, head 2").click()
    page.wait_for_selector("canvas.sheet")
    assert page.get_by_label("Layer", exact=True).input_value() == "1"
    assert page.get_by_label("Head", exact=True).input_value() == "2"


@pytest.mark.parametrize("level", ["words", "sentences"])
def test_text_is_marked(visit, place, level) -> None:
    page = visit(place, f"view=text&show=0.0.0&units={level}&special=false&scale=row")
    marks = page.locator('.text[data-side="key"] .mark')
    expected = {"words": ["unbelievable", "luck", "."], "sentences": ["unbelievable luck."]}
    assert marks.all_inner_texts() == expected[level]
    page.locator('.text[data-side="query"] .mark >> nth=0').hover()
    group = {"words": [[1, 2, 3], [4], [5]], "sentences": [[1, 2, 3, 4, 5]]}[level]
    weights = translation().maps[0].weights[0]
    row = [weights[group[0]][:, places].sum() / len(group[0]) for places in group]
    assert marks.evaluate_all("marks => marks.map(mark => mark.title)") == [number(weight) for weight in row]
    darkest = marks.nth(int(torch.stack(row).argmax())).evaluate("mark => getComputedStyle(mark).backgroundColor")
    assert darkest == "rgb(8, 48, 107)"
    assert page.inner_text(".card >> nth=0 >> h3").startswith("Key: attention of unbelievable")
    assert page.inner_text(".card >> nth=1 >> h3") == "Query"


def test_text_shows_what_attends_to_a_key(visit, place) -> None:
    page = visit(place, "view=text&show=0.2.0&units=pieces&pin=key.4")
    shown = page.locator('.text[data-side="query"] .mark').evaluate_all("marks => marks.map(mark => mark.title)")
    assert shown == [number(weight) for weight in translation().maps[2].weights[0, :, 4]]


def test_picture_is_bright_where_it_is_attended_to(visit, picture) -> None:
    page = visit(picture, "view=image&show=0.1.0&pin=query.2")
    page.wait_for_selector(".large canvas")
    weights = caption().maps[1].weights[0, 2]
    page.get_by_role("switch", name="Smooth").click()
    centre = """(canvas, [row, col]) => [...canvas.getContext('2d').getImageData(
        Math.round((col + 0.5) / 5 * canvas.width), Math.round((row + 0.5) / 3 * canvas.height), 1, 1).data]"""
    bright = {
        patch: sum(page.eval_on_selector(".large canvas", centre, [patch // 5, patch % 5])[:3]) for patch in range(15)
    }
    order = sorted(bright, key=bright.__getitem__)
    assert order[-1] == int(weights.argmax())
    assert bright[order[-1]] > 2 * bright[int(weights.argmin())]
    assert page.locator(".film button").count() == 4


def test_picture_that_attends_to_itself(visit, picture) -> None:
    page = visit(picture, "view=image&show=0.0.0")
    box = page.locator(".picker canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.9)  # line 3, column 3
    page.wait_for_selector(".large h3 bdi:has-text('3,3')")
    page.get_by_role("button", name="[CLS]").click()
    page.wait_for_selector(".large h3 bdi:has-text('[CLS]')")
    large = page.locator(".large canvas").bounding_box()
    page.mouse.move(large["x"] + large["width"] * 0.1, large["y"] + large["height"] * 0.1)
    assert page.inner_text("[role=status] b") == number(caption().maps[0].weights[0, 0, 1])


def test_a_recorded_vision_transformer(visit, tmp_path) -> None:
    model = VisionTransformer().eval()
    with torch.no_grad(), saccade.record(model) as trace:
        model(image())
    trace.explore(tmp_path / "page.html", queries=ImageAxis(png=png(40, 24), grid=GRID, leading=["[CLS]"]))
    page = visit(tmp_path / "page.html")  # it opens with the picture
    page.get_by_label("Head", exact=True).select_option("1")
    page.get_by_role("button", name="[CLS]").click()
    page.wait_for_selector(".large h3 bdi:has-text('[CLS]')")
    box = page.locator(".large canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)  # line 2, column 3
    weight = trace["blocks.2"].weights[0, 1, 0, 1 + 5 + 2]
    page.wait_for_selector("[role=status] b")
    assert float(page.inner_text("[role=status] b")) == pytest.approx(float(weight), abs=6e-5)


def test_measures_of_both_items(visit, place) -> None:
    page = visit(place, "view=measures")
    assert page.locator(".measures tbody td").all_inner_texts() == ["0.25", "5.25"]
    assert page.inner_text(".measures tbody th").split("\n")[0] == "AER"
    assert page.inner_text(".measures .meaning") == "How many links are wrong. Less is better."
    assert page.locator(".measures thead th").all_inner_texts() == ["Measure, and what it means", "first", "second"]


def test_two_items_side_by_side(visit, place) -> None:
    page = visit(place, "show=0.2.1&beside=1.2.1&units=pieces&at=3.5")
    numbers = page.locator("[role=status] b").all_inner_texts()
    assert numbers == [number(translation(seed=seed).maps[2].weights[1, 3, 5]) for seed in (0, 5)]
    assert page.locator("canvas.sheet").count() == 2


def test_a_page_may_open_with_two_items_side_by_side(visit, tmp_path) -> None:
    place = tmp_path / "both.html"
    write_page(place, [translation(seed=seed) for seed in (0, 5)], title="Both", side_by_side=True)
    page = visit(place)
    assert page.locator("canvas.sheet").count() == 2
    page.keyboard.press("b")
    page.locator("canvas.sheet").nth(1).wait_for(state="detached")
    page.wait_for_url("**#*beside=none*")
    assert visit(place, "beside=none").locator("canvas.sheet").count() == 1


def test_views_that_do_not_fit_are_not_offered(visit, place, picture) -> None:
    assert visit(place).locator("[role=tab]").all_inner_texts() == [
        "Heat map",
        "Ribbons",
        "All heads",
        "Text",
        "Measures",
    ]
    assert visit(picture).locator("[role=tab]").all_inner_texts() == ["Heat map", "All heads", "Picture"]


def test_two_texts_have_their_own_names(visit, tmp_path) -> None:
    map = dataclasses.replace(translation().maps[2], sides=("hypothesis", "<b>premise</b>"))
    write_page(tmp_path / "page.html", [Item(title="pair", maps=[map])], title="A pair")
    page = visit(tmp_path / "page.html", "view=ribbons")
    shown = page.locator("svg text").all_text_contents()
    assert "hypothesis" in shown
    assert "<b>premise</b>" in shown
    assert "output" not in shown
