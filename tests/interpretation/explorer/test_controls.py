"""Each control in a real browser."""

import re

import pytest

from saccade.interpretation.explorer import Item, Map, TextAxis, write_page
from tests.interpretation.explorer.examples import recording, review, softmax, star, translation


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    write_page(path, [translation(), translation("second", seed=5)], title="Two models")
    return path


def fragment(page, part: str) -> None:
    """Waits until the address holds a part."""
    page.wait_for_url(re.compile(rf"#(.*&)?{re.escape(part)}(&|$)"))


def ribbons(page) -> list[str]:
    return page.locator('.token[data-side="key"] text').all_text_contents()


def test_words_or_subwords_and_special_tokens(visit, place) -> None:
    page = visit(place, "view=ribbons&show=0.2.0")
    assert ribbons(page) == ["[CLS]", "unbelievable", "luck", ".", "[SEP]"]
    page.get_by_role("switch", name="Special tokens").click()
    fragment(page, "special=false")
    assert ribbons(page) == ["unbelievable", "luck", "."]
    page.get_by_role("radio", name="Subwords").click()
    fragment(page, "units=pieces")
    assert ribbons(page) == ["un", "##believ", "##able", "luck", "."]
    page.get_by_role("radio", name="Sentences").click()
    fragment(page, "units=sentences")
    assert page.eval_on_selector("aside", "aside => aside.scrollWidth <= aside.clientWidth")
    assert ribbons(page) == ["unbelievable luck."]


def test_heads_are_aggregated(visit, place) -> None:
    page = visit(place, "show=0.2.mean&units=pieces&at=1.2")
    weights = translation().maps[2].weights[:, 1, 2]
    for choice, expected in (("max", weights.max()), ("1", weights[1]), ("mean", weights.mean())):
        page.get_by_label("Head", exact=True).select_option(choice)
        page.wait_for_selector(
            f"[role=status] b:text-is('{float(expected):.4f}')"
            if f"{float(expected):.4f}"[-1] != "0"
            else "[role=status] b"
        )
        assert float(page.inner_text("[role=status] b")) == pytest.approx(float(expected), abs=6e-5)


def test_layers_are_stepped_through(visit, place) -> None:
    page = visit(place)
    assert page.get_by_label("Layer", exact=True).input_value() == "2"
    page.get_by_label("Next layer").click()
    fragment(page, "show=0.0.mean")
    page.get_by_label("Previous layer").click()
    page.get_by_label("Item", exact=True).select_option("1")
    fragment(page, "show=1.2.mean")


def test_threshold_hides_weights(visit, place) -> None:
    page = visit(place, "view=ribbons&show=0.2.0&units=pieces")
    all_of_them = page.locator(".ribbon").count()
    page.get_by_label("Hide weights below").fill("60")
    fragment(page, "threshold=0.216")
    left = page.locator(".ribbon").count()
    assert left == int((translation().maps[2].weights[0] >= 0.216).sum())
    assert 0 < left < all_of_them
    assert "≥ 0.216" in page.inner_text(".slider >> nth=0")


def test_scale_and_palette_change_the_colours(visit, place) -> None:
    page = visit(place, "show=0.2.0&units=pieces")

    def picture() -> str:
        return page.eval_on_selector("canvas.sheet", "canvas => canvas.toDataURL()")

    seen = {picture()}
    assert page.get_by_role("radio", name="0 to 1").get_attribute("aria-checked") == "true"
    assert page.locator(".caution").count() == 0
    for name in ("Map", "Row"):
        page.get_by_role("radio", name=name).click()
        fragment(page, f"scale={name.lower()}")
        seen.add(picture())
    assert "untrained model looks sharp" in page.inner_text(".caution")
    for palette in ("viridis", "cividis", "magma", "greys"):
        page.get_by_label("Palette").select_option(palette)
        fragment(page, f"palette={palette}")
        seen.add(picture())
    assert len(seen) == 7


def test_pin(visit, place) -> None:
    page = visit(place, "view=ribbons&show=0.2.0&units=pieces")
    page.locator('.token[data-side="key"] >> nth=4').click()
    fragment(page, "pin=key.4")
    assert page.inner_text(".pinned bdi") == "luck"
    page.mouse.move(5, 5)
    assert page.locator(".ribbon.lit").count() > 0
    page.keyboard.press("2")
    page.keyboard.press("1")
    assert page.inner_text(".pinned bdi") == "luck"  # it stays when the view changes
    page.get_by_label("Unpin").click()
    page.wait_for_selector(".pinned", state="detached")


def test_a_key_counts_as_soon_as_the_view_is_ready(visit, place) -> None:
    page = visit(place, "show=0.2.0&units=pieces")
    page.evaluate("""() => new MutationObserver((changes, observer) => {
        if (!document.querySelector("[data-ready=true]")) return;
        observer.disconnect();
        dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown"}));
    }).observe(document.body, {subtree: true, attributes: true, attributeFilter: ["data-ready"]})""")
    page.keyboard.press("]")  # another map, which has to be unpacked first
    page.wait_for_selector("[role=status] :text-is('row 0, column 0')", timeout=10_000)
    assert page.inner_text("[role=status] .faint") == "row 0, column 0"


def test_keys(visit, place) -> None:
    page = visit(place, "show=0.2.0&units=pieces")
    status = page.locator("[role=status] .faint")
    for key, expected in (
        ("ArrowDown", "row 0, column 0"),
        ("ArrowDown", "row 1, column 0"),
        ("ArrowRight", "row 1, column 1"),
        ("ArrowUp", "row 0, column 1"),
        ("ArrowUp", "row 0, column 1"),
        ("End", "row 0, column 6"),
        ("ArrowLeft", "row 0, column 5"),
        ("Home", "row 0, column 0"),
    ):
        page.keyboard.press(key)
        page.wait_for_selector(f"[role=status] :text-is('{expected}')")
        assert status.inner_text() == expected
    for key, expected in (
        ("Enter", "pin=query.0"),
        ("Escape", "at=0.0"),
        ("Shift+Enter", "pin=key.0"),
        ("]", "show=0.0.0"),
        ("[", "show=0.2.0"),
        (".", "show=0.2.1"),
        (",", "show=0.2.0"),
        ("a a", "show=0.2.max"),
        ("u u", "units=sentences"),
        ("s", "special=false"),
        ("l", "links=false"),
        ("c", "scale=map"),
        ("h", "split=true"),
        ("+", "zoom=1.414"),
        ("b", "beside=1.2.max"),
        ("d", "theme=dark"),
        ("5", "view=measures"),
    ):
        for each in key.split():
            page.keyboard.press(each)
        fragment(page, expected)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert "side by side" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")


def test_zoom_shows_a_part_that_scrolls(visit, place) -> None:
    page = visit(place, "show=0.2.0&units=pieces&zoom=8")
    frame = page.locator(".frame")
    assert frame.evaluate("frame => frame.scrollWidth > 2 * frame.clientWidth")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.wait_for_selector("[role=status] :text-is('row 0, column 6')")
    page.wait_for_timeout(100)
    assert frame.evaluate("frame => frame.scrollLeft") > 0


def test_dark_and_light(visit, place) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page = visit(place, color_scheme="dark")
    assert page.evaluate(ground) == "rgb(16, 20, 27)"
    page.get_by_label("Light colours").click()
    fragment(page, "theme=light")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert visit(place, color_scheme="light").evaluate(ground) == "rgb(255, 255, 255)"


def test_address_holds_the_state(visit, place) -> None:
    state = (
        "view=ribbons&show=1.1.2&beside=0.2.max&units=pieces&special=false&threshold=0.01&scale=map&palette=magma"
        "&theme=dark&links=false&split=true&pin=query.2&at=2.4"
    )
    page = visit(place, state)
    assert page.get_by_label("Item", exact=True).input_value() == "1"
    assert page.get_by_label("Head on the right").input_value() == "max"
    assert page.get_by_label("Palette").input_value() == "magma"
    assert page.get_by_role("radio", name="Map").get_attribute("aria-checked") == "true"
    page.keyboard.press("l")
    page.keyboard.press("l")
    page.wait_for_timeout(300)
    assert page.url.partition("#")[2] == state
    page.evaluate("location.hash = 'view=text'")
    page.wait_for_selector(".highlights")


def test_nonsense_in_the_address_does_no_harm(visit, place) -> None:
    page = visit(
        place, "view=nothing&show=99.99.99&pin=query.999&at=77.88&threshold=x&zoom=-3&palette=__proto__&units=%3C"
    )
    assert page.get_by_label("Item", exact=True).input_value() == "1"
    assert page.locator("canvas.sheet").count() == 1
    assert page.inner_text("[role=alert]") == "There is no view called “nothing”: Heat map is shown."
    page.get_by_role("tab", name="Ribbons").click()
    page.locator("[role=alert]").wait_for(state="detached")
    page.evaluate("location.hash = 'view=image'")
    page.wait_for_selector("[role=alert]:has-text('Picture cannot show this map')")
    assert visit(place, "view=heat").locator("[role=alert]").count() == 0


def test_each_map_falls_back_to_the_view_that_suits_it(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [review(), star(5), recording()], title="Three domains")
    page = visit(tmp_path / "page.html")
    for item, view in (("1", "Neighbourhood"), ("2", "Text"), ("0", "Text")):
        page.get_by_label("Item", exact=True).select_option(item)
        page.wait_for_selector(f"[role=tab][aria-selected=true]:text-is('{view}')")
        assert page.locator("[role=alert]").count() == 0


def test_measures_have_no_controls_of_weights(visit, place) -> None:
    page = visit(place, "view=measures")
    for name in ("Hide weights below", "Palette", "Zoom", "Item", "Layer"):
        assert page.get_by_label(name, exact=True).count() == 0
    assert page.locator("aside, .legend").count() == 0
    assert page.locator("main").bounding_box()["width"] == 1280
    page.get_by_role("tab", name="Ribbons").click()
    page.get_by_label("Hide weights below").wait_for()


@pytest.mark.parametrize(
    ("pieces", "words", "name"),
    [
        (["b", "e\u0301", " ", "c", "</s>"], [[0, 1], [3]], "Characters"),
        (["be", "c", "d", "</s>"], [[0, 1], [2]], "Subwords"),
        (["be", "cd", "ef", "</s>"], [[0], [1], [2]], "Tokens"),
    ],
)
def test_units_are_called_what_they_are(visit, tmp_path, pieces, words, name) -> None:
    last = len(pieces) - 1
    axis = TextAxis(pieces=pieces, words=words, special=[last], sentences=[list(range(last))])
    weights = softmax(1, len(pieces), len(pieces))
    write_page(
        tmp_path / "page.html",
        [Item(title="one", maps=[Map(name="layer", weights=weights, queries=axis, keys=axis)])],
        title="Units",
    )
    units = visit(tmp_path / "page.html").get_by_role("radiogroup", name="Units").get_by_role("radio")
    assert units.all_inner_texts() == [name, "Words", "Sentences"]
    assert units.page.eval_on_selector("aside", "aside => aside.scrollWidth <= aside.clientWidth")


@pytest.mark.parametrize("view", ["heat", "ribbons", "heads", "text", "measures"])
def test_downloads(visit, place, view, tmp_path) -> None:
    page = visit(place, f"view={view}&show=0.2.0&beside=1.2.0")
    for kind, name in (("png", "PNG picture"), ("svg", "SVG drawing")):
        page.get_by_label("Download").click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        file = tmp_path / f"view.{kind}"
        waiting.value.save_as(file)
        assert waiting.value.suggested_filename.startswith("Two-models-")
        content = file.read_bytes()
        assert len(content) > 500
        assert content.startswith(b"\x89PNG" if kind == "png" else b"<svg")
        if kind == "svg":
            assert b"first" in content if view == "measures" else b"luck" in content or view == "heads"


# What stands inside of a field, such as the options of a choice, is not its name.
NAMELESS = """() => [...document.querySelectorAll('button, select, input, canvas.sheet, [role=application], summary')]
    .filter(each => {
        if (each.ariaLabel?.trim()) return false;
        if (each.matches('button, summary')) return !each.textContent.trim();
        const label = each.closest('label')?.cloneNode(true);
        label?.querySelectorAll('select, input').forEach(field => field.remove());
        return !label?.textContent.trim();
    })
    .map(each => each.outerHTML.slice(0, 120))"""


def test_everything_has_a_name(visit, place) -> None:
    page = visit(place, "beside=1.2.0&pin=query.1")
    for view in ("Heat map", "Ribbons", "All heads", "Text", "Measures"):
        page.get_by_role("tab", name=view).click()
        assert not page.evaluate(NAMELESS)
    page.get_by_role("tab", name="Heat map").click()
    fields = page.locator("select[aria-label], input[aria-label]").count()
    page.evaluate("document.querySelectorAll('[aria-label]').forEach(each => each.removeAttribute('aria-label'))")
    assert len([each for each in page.evaluate(NAMELESS) if each.startswith(("<select", "<input"))]) == fields - 1
