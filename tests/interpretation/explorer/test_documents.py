"""A label over a text: the words that decided, highlighted in a real browser and listed in the terminal."""

import json

import pytest
import torch

from saccade.fields import Document
from saccade.interpretation.explorer import Item, Map, Outcome, TextAxis, render, write_page
from saccade.models import HAN
from saccade.tasks import Classification
from tests.interpretation.explorer.examples import review, softmax, wait_until


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "reviews.html"
    write_page(path, [review(), review(1300), review(120, sentences=7)], title="Reviews")
    return path


def test_probabilities_are_checked() -> None:
    with pytest.raises(ValueError, match=r"probability of 'a' must be between 0 and 1, got 1.5"):
        Outcome(label="a", probability=1.5)


def test_opens_with_the_label_and_the_highlighted_text(visit, place) -> None:
    page = visit(place)
    assert page.get_by_role("tab", name="Text").get_attribute("aria-selected") == "true"
    assert page.inner_text(".verdict").split("\n") == ["positive", "87.5 %", "✗ true label: negative"]
    assert "negative 12.5 %" in page.inner_text(".outcomes p")
    weights = review().maps[0].weights.mean(dim=0)[0]
    marks = page.locator('.text[data-side="key"] .mark')
    titles = marks.evaluate_all("marks => marks.map(mark => +mark.title)")
    assert titles == pytest.approx(weights.tolist(), abs=6e-5)
    strongest = marks.nth(int(weights.argmax())).evaluate("mark => getComputedStyle(mark).backgroundColor")
    assert strongest == "rgb(8, 48, 107)"
    assert f"{float(weights.max() * 40):.1f} \u00d7 an even share among 40" in page.inner_text(".share")
    assert page.inner_text(".text").endswith("word37 word38.")  # running text


def test_top_words_largest_first(visit, place) -> None:
    page = visit(place, "show=0.0.1")
    weights = review().maps[0].weights[1, 0]
    order = weights.argsort(descending=True)[:25]
    assert page.locator(".top li .number").all_inner_texts() == [f"{float(weights[n]):.4f}" for n in order]
    page.locator(".top li >> nth=2").hover()
    assert float(page.inner_text("[role=status] b")) == pytest.approx(float(weights[order[2]]), abs=6e-5)
    assert page.locator('.mark[data-focus="true"]').get_attribute("data-unit") == str(int(order[2]))
    assert "and 15 more" in page.inner_text(".top")


def test_long_texts_wrap_scroll_and_show_the_pinned_word(visit, place) -> None:
    page = visit(place, "show=1.0.mean")
    assert page.locator(".reader .mark").count() == 1300
    reader = page.locator(".reader")
    assert reader.evaluate("each => each.scrollHeight > 2 * each.clientHeight && each.scrollWidth <= each.clientWidth")
    last = page.locator(".top li").evaluate_all("each => Math.max(...each.map(one => +one.dataset.unit))")
    page.locator(f'.top li[data-unit="{last}"]').click()
    page.wait_for_url(f"**pin=key.{last}*")
    wait_until(
        page,
        "unit => { const box = document.querySelector(`.mark[data-unit='${unit}']`).getBoundingClientRect();"
        " const frame = document.querySelector('.reader').getBoundingClientRect();"
        " return box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1; }",
        last,
    )


@pytest.mark.slow
def test_thousands_of_sentences_open(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [review(20_000, sentences=4_000)], title="Long")
    assert (tmp_path / "page.html").stat().st_size < 2_000_000
    page = visit(tmp_path / "page.html")
    page.wait_for_selector(".sentence", timeout=120_000)
    assert page.locator(".sentence").count() == 4_000


def test_sentence_weights_stand_in_the_margin(visit, place) -> None:
    page = visit(place, "show=2.0.mean")
    page.wait_for_selector(".sentence .number")
    weights = review(120, sentences=7).maps[1].weights[0, 0]
    assert page.locator(".sentence .number").all_inner_texts() == [f"{float(weight):.3f}" for weight in weights]
    counts = page.locator(".sentence").evaluate_all("each => each.map(one => one.querySelectorAll('.mark').length)")
    assert counts == [18, 18, 18, 18, 18, 18, 12]


def test_the_most_detailed_of_several_one_row_maps_is_shown_first(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [review(30, sentences=3)], title="Sentences")
    page = visit(tmp_path / "page.html")
    assert page.get_by_label("Layer", exact=True).input_value() == "0"


@pytest.mark.parametrize(
    ("pieces", "words", "text"),
    [
        (list("a bc, d"), [[0], [2, 3, 4], [6]], "a bc, d"),
        (["\u2581un", "do", "\u2581it", "."], [[0, 1], [2], [3]], "undo it."),
        (["well", ",", "(", "yes", ")", "!"], [[n] for n in range(6)], "well, (yes)!"),
        (["one", "\n", "two"], [[0], [2]], "one\ntwo"),
        (["[CLS]", "go", "[SEP]"], [[1]], "[CLS] go [SEP]"),
    ],
)
def test_running_text_keeps_its_spaces(visit, tmp_path, pieces, words, text) -> None:
    special = [place for place, piece in enumerate(pieces) if piece.startswith("[")]
    axis = TextAxis(pieces=pieces, words=words, special=special)
    weights = softmax(1, 1, len(pieces))
    item = Item(title="t", maps=[Map(name="m", weights=weights, queries=TextAxis(pieces=["label"]), keys=axis)])
    write_page(tmp_path / "page.html", [item], title="Spaces")
    page = visit(tmp_path / "page.html")
    assert page.inner_text(".text").strip() == text
    assert page.inner_text(".verdict") == "label"
    # White space counts with the word after it, so that nothing is lost.
    total = page.locator(".mark").evaluate_all("marks => marks.reduce((sum, mark) => sum + Number(mark.title), 0)")
    assert total == pytest.approx(1.0, abs=1e-3)


def test_spaces_are_no_words_in_python_either() -> None:
    axis = TextAxis(pieces=list(" ab c "), words=[[1, 2], [4]])
    assert axis.groups == [[0, 1, 2], [3, 4, 5]]
    assert TextAxis(pieces=list("a b")).groups == [[0], [1], [2]]  # without words every piece stands for itself
    assert TextAxis(pieces=[" ", "\n"], words=[]).groups == [[0], [1]]
    text = render([Item(title="t", maps=[Map(name="m", weights=torch.eye(6)[None], queries=axis, keys=axis)])], "text")
    assert "␣" not in text.decode()


def test_terminal_lists_the_words_largest_first() -> None:
    lines = render([review()], "text", width=70).decode().splitlines()
    weights = review().maps[0].weights.mean(dim=0)[0]
    order = weights.argsort(descending=True)
    start = lines.index("words, mean of 2 heads: positive") + 1
    names = [f"word{int(each)}" if each < 39 else "." for each in order[:20]]
    assert [line.split()[0] for line in lines[start : start + 20]] == names
    assert [line.split()[1] for line in lines[start : start + 20]] == [f"{float(weights[n]):.3f}" for n in order[:20]]
    assert lines[start + 20] == f"… and 20 more, {float(weights[order[20:]].sum()):.3f} together"
    assert lines[:3] == ["a review", "positive  0.875", "negative  0.125  (true label)"]


def rationale(*, picked=(3, 4, 5, 9), gold=(4, 5, 6)) -> Item:
    """A text in subwords, of which the model read some words and people marked some."""
    pieces = ["the", "story", "is", "un", "##convinc", "##ing", "and", "far", "too", "long", "."]
    words = [[0], [1], [2], [3, 4, 5], [6], [7], [8], [9], [10]]
    axis = TextAxis(pieces=[*pieces, "</s>"], words=words, special=[11], gold=gold)
    weights = torch.full((1, 1, 12), 0.1)
    weights[..., list(picked or ())] = 0.3
    label = TextAxis(pieces=["negative"])
    return Item(title="r", maps=[Map(name="rationale", weights=weights, queries=label, keys=axis, picked=picked)])


def marked(page, which):
    return page.locator(f'.reader .mark[data-{which}="true"]').all_inner_texts()


def test_what_the_model_picked_beside_what_people_marked(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [rationale()], title="Rationale")
    page = visit(tmp_path / "page.html")
    assert marked(page, "picked") == ["unconvincing", "long"]
    assert marked(page, "gold") == ["unconvincing", "and"]
    style = "mark => [getComputedStyle(mark).outlineStyle, getComputedStyle(mark).textDecorationLine]"
    styles = page.locator(".reader .mark").evaluate_all(f"marks => marks.map({style})")
    assert [each[0] for each in styles] == ["none"] * 3 + ["solid"] + ["none"] * 3 + ["solid", "none", "none"]
    assert [each[1] for each in styles] == ["none"] * 3 + ["underline"] * 2 + ["none"] * 5
    said = page.inner_text(".share")
    assert "by the model: 2 of 9" in said
    assert "by people: 2" in said
    assert "both: 1 (50 % of the picked, 50 % of the marked)" in said
    assert "even share" not in said  # probabilities of picks are no shares
    page = visit(tmp_path / "page.html", "units=pieces")
    assert marked(page, "picked") == ["un", "##convinc", "##ing", "long"]
    assert marked(page, "gold") == ["##convinc", "##ing", "and"]


def test_soft_weights_beside_what_people_marked(visit, tmp_path) -> None:
    item = rationale(picked=None)
    write_page(tmp_path / "page.html", [item], title="Weights")
    page = visit(tmp_path / "page.html")
    assert marked(page, "picked") == []
    assert marked(page, "gold") == ["unconvincing", "and"]
    said = page.inner_text(".share")
    assert "weight on these: 0.3333" in said  # four of the twelve pieces, the end included
    assert "even share" in said


def test_a_text_without_either_has_no_marks(visit, place) -> None:
    page = visit(place)
    assert marked(page, "picked") == marked(page, "gold") == []
    assert page.locator(".agreement").count() == 0


def test_picks_and_marks_in_the_terminal_and_in_data() -> None:
    text = render([rationale(), rationale(picked=(), gold=None)], "text", width=70).decode()
    assert "picked by the model: unconvincing … long\nmarked by people: unconvincing and\n" in text
    assert "picked by the model: (nothing)\n" in text
    (shown,) = json.loads(render([rationale()], "json"))["items"][0]["maps"]
    assert shown["picked"] == [3, 4, 5, 9]
    assert shown["keys"]["gold"] == [4, 5, 6]


def test_picks_and_marks_are_drawn(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [rationale()], title="Rationale")
    page = visit(tmp_path / "page.html")
    page.get_by_label("Download").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG drawing").click()
    waiting.value.save_as(tmp_path / "view.svg")
    drawing = (tmp_path / "view.svg").read_text()
    assert drawing.count('fill="#2b8a3e"') == 2
    assert drawing.count('stroke="#1a2130"') == 2


def test_download(visit, place, tmp_path) -> None:
    page = visit(place)
    page.get_by_label("Download").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG drawing").click()
    waiting.value.save_as(tmp_path / "view.svg")
    drawing = (tmp_path / "view.svg").read_text()
    assert "positive 0.875" in drawing
    assert ">word12<" in drawing


REVIEW = ["Dr. Smith's film was long.", "", "It was superb!", "Well."]


@pytest.fixture(scope="module")
def hierarchical(tmp_path_factory):
    """A document as a hierarchical network reads it, its weights, and its axis."""
    torch.manual_seed(3)
    field = Document(sentences="given")
    task = Classification(inputs={"text": field})
    examples = [{"text": REVIEW, "label": "good"}, {"text": ["So bad."], "label": "bad"}]
    task.fit(examples)
    model = task.build(HAN, embedding_dim=5, hidden_dim=7, context_dim=3)
    for parameter in model.parameters():
        parameter.data.normal_()
    (item,) = task.explain(model, examples[:1])
    path = tmp_path_factory.mktemp("explorer") / "han.html"
    write_page(path, [item], title="A document")
    return path, {each.name: each.weights[0, 0] for each in item.maps}, field.axis(REVIEW)


def titles(page):
    return page.locator(".reader .mark").evaluate_all("marks => marks.map(mark => +mark.title)")


def test_a_hierarchical_network_shows_sentences_and_their_words(visit, hierarchical) -> None:
    path, weights, axis = hierarchical
    page = visit(path)
    wait_until(page, "() => document.querySelectorAll('.sentence .number').length === 3")
    assert page.locator(".sentence p").all_inner_texts() == [sentence for sentence in REVIEW if sentence]
    sentences = weights["sentences.pooling"]
    assert page.locator(".sentence .number").all_inner_texts() == [f"{float(weight):.3f}" for weight in sentences]
    widths = page.locator(".sentence .meter span").evaluate_all("each => each.map(one => parseFloat(one.style.width))")
    assert widths == pytest.approx((100 * sentences / sentences.max()).tolist(), abs=0.5)
    # Words are first shown with their weights in the document: in the sentence, times that of the sentence.
    merged = [float(weights["document"][list(group)].sum()) for group in axis.words]
    assert titles(page) == pytest.approx(merged, abs=6e-5)
    assert sum(titles(page)) == pytest.approx(1.0, abs=2e-3)
    largest = page.locator(".reader .mark").nth(titles(page).index(max(titles(page))))
    assert largest.evaluate("mark => getComputedStyle(mark).backgroundColor") == "rgb(8, 48, 107)"
    page.get_by_label("Layer", exact=True).select_option(label="words.pooling")
    wait_until(page, "() => [...document.querySelectorAll('.reader .mark')].reduce((s, m) => s + +m.title, 0) > 2")
    assert sum(titles(page)) == pytest.approx(3.0, abs=2e-3)  # 1 for each sentence
    assert page.locator(".sentence .number").all_inner_texts() == [f"{float(weight):.3f}" for weight in sentences]


def test_sentences_of_one_word_each_keep_their_own_weights(visit, tmp_path) -> None:
    text = TextAxis(pieces=["good", "bad"], sentences=[[0], [1]])
    label = TextAxis(pieces=["mixed"])
    found = {"sentences": [0.75, 0.25], "words": [1.0, 1.0], "document": [0.75, 0.25]}
    axes = {"sentences": TextAxis(pieces=["good", "bad"]), "words": text, "document": text}
    maps = [
        Map(name=name, weights=torch.tensor([[weights]]), queries=label, keys=axes[name])
        for name, weights in found.items()
    ]
    write_page(tmp_path / "page.html", [Item(title="t", maps=maps)], title="Words")
    for shown in ("", "show=0.1.0"):
        page = visit(tmp_path / "page.html", shown)
        page.wait_for_selector(".sentence")
        assert page.locator(".sentence .number").all_inner_texts() == ["0.750", "0.250"]
