"""Any text is shown as itself and never run; the page speaks to nobody."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from saccade.interpretation.explorer import Item, Map, Measure, NodeAxis, Outcome, TextAxis, write_page
from tests.interpretation.explorer.examples import softmax

TEXTS = [
    "<script>window.harm = 1; alert(1)</script>",
    "</script><script>window.harm = 2</script>",
    '<img src=x onerror="window.harm = 3">',
    "<!--<script>",
    "]]>",
    "javascript:window.harm=4",
    "'\"`${window.harm=5}",
    "&lt;b&gt; &amp;",
    "שלום",
    "مرحبا",
    "e\u0301\u0323",  # combining marks
    "👩‍👩‍👧",
    "\u202eabc",  # an override of direction
    "\ud800",  # half a character
    "",
    " ",
    "\n",
    "\\u003c/script>",
    "{{7*7}}",
]
HARMLESS = [text for text in TEXTS if text.strip() and text != "\ud800"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    size = len(TEXTS)
    axis = TextAxis(pieces=TEXTS, words=[[place] for place in range(size)], special=[3])
    title = TEXTS[0]
    item = Item(
        title=TEXTS[1],
        maps=[
            Map(name=TEXTS[2], weights=softmax(2, size, size), queries=axis, keys=axis, layer=0),
            Map(name=TEXTS[3], weights=softmax(2, size, size), queries=axis, keys=axis, layer=1),
        ],
        measures=[Measure(name=TEXTS[0], value=TEXTS[2], meaning=TEXTS[1])],
        links=[(0, 1)],
    )
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    write_page(path, [item, item], title=title)
    return path


@pytest.mark.parametrize("view", ["heat", "ribbons", "heads", "text", "measures"])
def test_text_is_never_run(visit, place, view, tmp_path) -> None:
    page = visit(place, f"view={view}&beside=1.0.0&at=1.2&pin=query.0")
    page.wait_for_timeout(100)
    assert page.title() == TEXTS[0]
    assert page.inner_text("h1") == TEXTS[0]
    assert page.evaluate("window.harm") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1 + 4 + 4 + 1  # data, heads, the page's own
    for name in ("PNG picture", "SVG drawing"):
        page.get_by_label("Download").click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        waiting.value.save_as(tmp_path / name)
    drawing = (tmp_path / "SVG drawing").read_text()
    assert "<script" not in drawing
    assert "<img" not in drawing
    assert page.evaluate("window.harm") is None


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The same texts as names of nodes, labels and classes."""
    names = [text for text in TEXTS if text != "\ud800"]
    size = len(names)
    nodes = NodeAxis(names=names, labels=names[::-1])
    text = TextAxis(pieces=TEXTS, words=[[place] for place in range(len(TEXTS))])
    outcomes = [Outcome(label=TEXTS[0], probability=0.5), Outcome(label=TEXTS[2], probability=0.5, gold=True)]
    items = [
        Item(title="nodes", maps=[Map(name="m", weights=softmax(2, size, size), queries=nodes, keys=nodes)]),
        Item(
            title="text",
            maps=[Map(name="m", weights=softmax(2, 1, len(TEXTS)), queries=TextAxis(pieces=TEXTS[2:3]), keys=text)],
        ),
    ]
    path = tmp_path_factory.mktemp("explorer") / "others.html"
    write_page(path, [replace(item, outcomes=outcomes) for item in items], title=TEXTS[0])
    return path


@pytest.mark.parametrize(
    "fragment", ["view=nodes&show=0.0.mean&at=0.2", "view=nodes&split=true", "view=text&show=1.0.0"]
)
def test_names_of_nodes_and_labels_are_never_run(visit, others, fragment) -> None:
    page = visit(others, fragment)
    page.wait_for_selector(".top li")
    page.locator(".top li >> nth=1").hover()
    page.wait_for_timeout(50)
    assert page.evaluate("window.harm") is None
    assert page.locator("img").count() == 0
    assert page.inner_text(".verdict bdi >> nth=0") == TEXTS[0]
    assert not [text for text in HARMLESS[:7] if text not in page.inner_text("main")]


def test_every_text_is_shown_as_it_is(visit, place) -> None:
    page = visit(place, "view=text&show=0.0.0&units=pieces")
    shown = page.locator('.text[data-side="key"] .mark').all_text_contents()
    assert len(shown) == len(TEXTS)
    assert not [text for text in HARMLESS if text not in shown]
    assert shown[TEXTS.index("")] == "∅"
    assert shown[TEXTS.index(" ")] == "\u00a0"  # a blank that can be pointed at
    assert shown[TEXTS.index("\n")] == "↵"


def test_right_to_left_text_begins_on_the_right(visit, tmp_path) -> None:
    axis = TextAxis(pieces=["שלום", "עולם", "abc"])
    item = Item(title="rtl", maps=[Map(name="m", weights=softmax(1, 3, 3), queries=axis, keys=axis)])
    write_page(tmp_path / "page.html", [item], title="rtl")
    page = visit(tmp_path / "page.html", "view=text")
    places = [mark.bounding_box()["x"] for mark in page.locator('.text[data-side="key"] .mark').all()]
    assert places == sorted(places, reverse=True)


def test_policy_allows_the_page_alone(place) -> None:
    text = place.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    assert "unsafe" not in policy
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        (own,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        assert rules[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'"


def test_injected_script_does_not_run(visit, place, tab) -> None:
    """Were a text ever put into the page as markup, the policy would still refuse it."""
    page = visit(place)
    for markup in ('<img src="x:" onerror="window.harm = 6">', '<a href="javascript:window.harm = 7" id="bad">x</a>'):
        page.evaluate("markup => document.body.insertAdjacentHTML('beforeend', markup)", markup)
    page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.harm = 8';"
        " document.body.append(script); }"
    )
    page.eval_on_selector("#bad", "link => link.click()")
    page.wait_for_timeout(200)
    assert page.evaluate("window.harm") is None
    refused = [text for text in tab[1] if "Content Security Policy" in text]
    assert len(refused) >= 3
    tab[1].clear()
