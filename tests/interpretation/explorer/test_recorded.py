"""Pages of recorded models in a real browser."""

import pytest
import torch

import saccade
from saccade.interpretation.explorer import Item, Map, TextAxis, write_page
from tests.interpretation.explorer.examples import softmax
from tests.interpretation.recording.pages import tokeniser
from tests.interpretation.recording.test_generated_pages import TEXTS, gpt2, t5
from tests.interpretation.recording.test_media_pages import vision, whisper


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(13)


def layers(page) -> list[str]:
    return page.locator("select[aria-label=Layer] option").all_inner_texts()


def read(page) -> str:
    return page.inner_text("[role=status]").replace("\n", " ")


def test_generation_of_a_decoder(visit, tmp_path) -> None:
    model, tokenizer = gpt2(), tokeniser("left")
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with saccade.record(model) as trace:
        written = model.generate(**batch, max_new_tokens=5, min_new_tokens=5, do_sample=False)
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=written, row=1, title="GPT-2")
    page = visit(tmp_path / "page.html", "view=text&units=words")
    assert page.inner_text("h1") == "GPT-2"
    assert layers(page) == ["transformer.h.0.attn", "transformer.h.1.attn"]
    text = page.inner_text("[data-side=key]").split()
    assert text[:3] == ["two", "dogs", "slept"]
    assert len(text) == 3 + 5 - 1
    assert page.locator(".card h3").all_inner_texts() == ["Key: attention of the whole query, on average", "Query"]
    assert page.locator(".notes").count() == 0


def test_generation_with_beams(visit, tmp_path) -> None:
    model, tokenizer = t5(), tokeniser()
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    options = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 5, "do_sample": False}
    with saccade.record(model) as trace:
        written = model.generate(**batch, **options, return_dict_in_generate=True)
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=written, row=3)
    page = visit(tmp_path / "page.html", "view=ribbons")
    assert len(layers(page)) == 6
    assert page.input_value("select[aria-label=Layer]") == "5"  # attention to the input, of the last layer
    drawn = page.locator(".ribbons svg text").all_text_contents()
    assert {"input", "output", "two", "dogs", "slept"} <= set(
        drawn
    )  # the second input has the third and fourth sequence
    assert "cat" not in drawn or "\u2581cat" in tokenizer.convert_ids_to_tokens(written.sequences[3].tolist())


def test_picture(visit, tmp_path) -> None:
    model, pixels = vision("vit"), torch.rand(1, 3, 12, 20)
    with torch.no_grad(), saccade.record(model) as trace:
        model(pixel_values=pixels)
    trace.explore(tmp_path / "page.html", inputs=pixels)
    page = visit(tmp_path / "page.html")
    page.wait_for_selector("canvas.photo")
    assert page.locator(".leading button").all_inner_texts() == ["[CLS]"]
    page.click(".leading button")
    assert page.inner_text(".large h3") == "Attention of [CLS]"
    page.hover("canvas.photo >> nth=0")
    assert "[CLS] \u2192 2,3" in read(page)  # the middle of 3 x 5 patches


def test_speech(visit, tmp_path) -> None:
    model, tokenizer = whisper(), tokeniser()
    with saccade.record(model) as trace:
        written = model.generate(input_features=torch.randn(1, 13, 100), max_new_tokens=7, min_new_tokens=7)
    samples = torch.sin(torch.arange(12_000) * 0.3)
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=samples, generated=written)
    page = visit(tmp_path / "page.html", "at=0.25")
    assert "0.50 s" in read(page)  # 50 positions stand for a second
    assert page.locator(".player button >> nth=0").is_enabled()


def test_notes_are_read_and_never_run(visit, tmp_path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    axis = TextAxis(pieces=["a", evil, "</script><script>alert(2)</script>"])
    maps = [Map(name="m", weights=softmax(1, 3, 3), queries=axis, keys=axis)]
    write_page(tmp_path / "page.html", [Item(title="t", maps=maps, notes=[f"Not shown: {evil}", "second"])], title="t")
    page = visit(tmp_path / "page.html")
    assert page.inner_text(".notes summary") == f"2 notes: Not shown: {evil}"
    page.click(".notes summary")
    assert page.locator(".notes li").all_inner_texts() == [f"Not shown: {evil}", "second"]
    assert page.locator("img").count() == 0


def test_spaces_among_letters_are_blank_in_the_text(visit, tmp_path) -> None:
    source, target = TextAxis(pieces=list("am 3. Mai")), TextAxis(pieces=list("05-03"))
    maps = [Map(name="m", weights=softmax(1, 5, 9), queries=target, keys=source)]
    write_page(tmp_path / "page.html", [Item(title="t", maps=maps)], title="t")
    page = visit(tmp_path / "page.html", "view=text")
    assert page.locator("[data-side=key] .mark").all_inner_texts() == list("am\u00a03.\u00a0Mai")
    assert page.locator("[data-side=key] [aria-label=space]").count() == 2


def test_words_say_where_they_came_from(visit, tmp_path) -> None:
    target = TextAxis(
        pieces=["quen", "tin", "slept", "</s>"],
        words=[[0, 1], [2]],
        special=[3],
        origins=["copied from word 3 (quentin)", "copied from word 3 (quentin)", "", ""],
    )
    source = TextAxis(pieces=["today", "then", "quentin"])
    maps = [Map(name="m", weights=softmax(1, 4, 3), queries=target, keys=source)]
    write_page(tmp_path / "page.html", [Item(title="t", maps=maps)], title="t")
    page = visit(tmp_path / "page.html", "view=text&pin=query.0&at=0.2")
    assert page.locator("[data-origin]").all_inner_texts() == ["quentin"]
    assert page.inner_text(".card h3 >> nth=0") == "Input: attention of quentin, copied from word 3 (quentin)"
    assert "Underlined words" in page.inner_text(".card >> nth=1")
    assert read(page).startswith("quentin copied from word 3 (quentin)")
    page.hover("[data-side=query] .mark >> nth=1")
    assert page.inner_text(".card h3 >> nth=0") == "Input: attention of slept"
    with pytest.raises(ValueError, match="3 pieces but 1 origins"):
        TextAxis(pieces=["a", "b", "c"], origins=["copied"])
