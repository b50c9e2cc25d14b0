"""A page runs the model in a browser without a network, and answers as the run does."""

import os
import shutil
from functools import partial

import pytest

from saccade.data.tokenisers import BpeTokeniser
from saccade.export import export
from saccade.export.page import _as_object
from saccade.export.web_runtime import VERSION, web_runtime
from saccade.fields import Text
from saccade.models import CopyNet
from saccade.tasks import Generation

from .conftest import PAIRS

pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def _runtime():
    if shutil.which("npm") is None and os.environ.get("SACCADE_PAGE_TESTS") is None:
        pytest.skip("there is no npm to fetch onnxruntime-web with")
    try:
        web_runtime()
    except ValueError as error:
        pytest.skip(f"onnxruntime-web is not to be had: {error}")


@pytest.fixture
def offline(chromium):
    """Opens a page without a network, and notes what it asks for and what goes wrong."""
    context = chromium.new_context(viewport={"width": 1100, "height": 800})
    context.set_offline(True)
    page = context.new_page()
    noted = []
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("console", lambda message: noted.append(message.text))
    page.on("request", lambda request: None if request.url.startswith("file:") else noted.append(request.url))

    def opened(path):
        page.goto(path.as_uri())
        page.wait_for_selector("#input:enabled", timeout=120_000)  # the policy allows no functions here
        return page

    yield opened, noted
    context.close()


def ask(page, text):
    page.fill("#input", text)
    page.wait_for_selector(f"#answer[data-input='{text}']", state="attached", timeout=60_000)
    rows = page.query_selector_all("#weights tbody tr")
    cells = [row.query_selector_all("td.weight") for row in rows]
    weights = [[float(cell.get_attribute("data-weight")) for cell in row] for row in cells]
    return page.inner_text("#answer"), weights


def came_from(page):
    """For each word of the answer: the way, its share, the position and what is there."""
    found = []
    for cell in page.query_selector_all("#weights td.origin"):
        place, key = cell.get_attribute("data-place"), cell.inner_text().partition("(")[2].removesuffix(")")
        share = float(cell.get_attribute("data-share"))
        found.append((cell.get_attribute("data-way"), share, int(place) if place else None, key))
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("_runtime")
def test_page_answers_and_looks_as_the_run(writer, offline, tmp_path):
    opened, noted = offline
    path = export(writer, tmp_path / "page.html", format="page", example="ba <su>")
    page = opened(path)
    assert page.input_value("#input") == "ba <su>"
    for text in ("tarifa we,", "x", "minamo kelu su"):
        wanted = writer.predict([text])[0]
        answer, weights = ask(page, text)
        assert answer == wanted.text.strip()
        assert weights == [pytest.approx(row, abs=2e-4) for row in wanted.weights.tolist()]
    assert noted == []


@pytest.mark.slow
@pytest.mark.usefixtures("_runtime")
@pytest.mark.parametrize("tokeniser", ["word", "bpe"])
def test_page_copies_words_as_the_run(tokeniser, trained, offline, tmp_path):
    opened, noted = offline
    text = partial(Text, tokeniser=BpeTokeniser(vocab_size=31) if tokeniser == "bpe" else tokeniser)
    task = partial(Generation, source=text, joint=True, copying=True, metrics=["exact_match"])
    run = trained(task, CopyNet, PAIRS, embedding_dim=7, hidden_dim=11)
    page = opened(export(run, tmp_path / "page.html", format="page"))
    page.select_option("#beam", "1")
    for asked in ("kelu kelu kelu kelu kelu", "urak urak urak urak urak urak", "su"):
        wanted = run.predict([asked], beam=1)[0]
        answer, weights = ask(page, asked)
        assert answer == wanted.text.strip()
        assert weights == [pytest.approx(row, abs=2e-4) for row in wanted.weights.tolist()]
        assert "urak" in answer or "urak" not in asked  # no word of the training
        assert came_from(page) == [
            (
                each.way,
                pytest.approx(each.share, abs=2e-4),
                each.position,
                (each.key or "").lstrip("▁") or each.key or "",
            )
            for each in wanted.origins
        ]
    assert noted == []


@pytest.mark.slow
@pytest.mark.usefixtures("_runtime")
def test_page_labels_texts(labeller, offline, tmp_path):
    opened, noted = offline
    page = opened(export(labeller, tmp_path / "page.html", format="page"))
    wanted = labeller.predict(["dodo su"])[0]
    answer, weights = ask(page, "dodo su")
    assert answer == wanted.value
    assert weights == [pytest.approx(row, abs=2e-4) for row in wanted.weights.tolist()]
    assert noted == []


@pytest.mark.slow
@pytest.mark.usefixtures("_runtime")
def test_demo_reads_dates_in_a_browser_without_a_network(offline, tmp_path):
    import saccade

    run = saccade.train("dates/rnnsearch", output=tmp_path / "demo")
    opened, noted = offline
    path = export(run, tmp_path / "demo.html", format="page")
    assert path.stat().st_size <= 30e6
    page = opened(path)
    answer, weights = ask(page, "le 3 avril 1998")
    assert answer == "1998-04-03"
    assert len(weights) == len(answer) + 1
    assert all(sum(row) == pytest.approx(1.0, abs=1e-2) for row in weights)
    assert noted == []


def test_exports_of_the_runtime_become_an_object():
    assert _as_object("var a=1,b=2;export{a as Tensor,b as env};\n//# map\n") == (
        "var a=1,b=2;const ort = {Tensor: a, env: b};"
    )


def test_runtime_of_another_version_is_refused_with_the_fix(tmp_path):
    (tmp_path / "ort.wasm.bundle.min.mjs").write_text("export{}")
    (tmp_path / "ort-wasm-simd-threaded.wasm").write_bytes(b"\0asm")
    with pytest.raises(ValueError, match=rf"does not contain onnxruntime-web {VERSION}: npm install onnxruntime-web"):
        web_runtime(str(tmp_path))
