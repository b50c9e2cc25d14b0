"""The generated reference, and the site that is built from it."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("mkdocs")

import command_pages
import docstrings
import equations
import hooks
import pages
from figures.explorer import ARGUMENTS, NAMES
from saccade.cli import COMMANDS
from saccade.configuration.catalogue import catalogue
from saccade.scores import AdditiveScore, BilinearScore
from saccade.selections import Sparsemax
from tests.docs.code_blocks import ROOT

PARTS = [
    (kind, name, member)
    for kind in ("scores", "selections", "aggregations")
    for name, member in pages.classes(kind).items()
]
MEMBERS = [(kind, name) for kind in pages.KINDS for name in pages.classes(kind)]

# Operations that everybody uses and no paper introduced.
NO_PAPER = {
    ("scores", "sum"),
    ("aggregations", "concat_picks"),
    ("aggregations", "max_pool"),
    ("aggregations", "sum"),
    ("aggregations", "top_k_mean"),
}


@pytest.mark.parametrize(("kind", "name", "member"), PARTS, ids=[f"{kind}-{name}" for kind, name, _ in PARTS])
def test_member_has_sentence_equation_shapes_and_reference(kind, name, member) -> None:
    parsed = docstrings.parse(member)
    assert parsed.summary.endswith(".")
    assert parsed.equations
    assert all(equation.strip() for equation in parsed.equations)
    assert parsed.sections.get("Shapes")
    assert bool(parsed.sections.get("Reference")) != ((kind, name) in NO_PAPER)
    page = next(page for page in pages.members()[kind] if page.path == f"{kind}/{name}.md")
    assert "<math" in page.text
    assert "## Shapes" in page.text
    assert ("## Reference" in page.text) != ((kind, name) in NO_PAPER)


def test_every_kind_has_pages() -> None:
    assert set(pages.KINDS) == set(catalogue())


def test_page_of_a_command_has_its_options_and_those_of_each_task() -> None:
    page = next(page for page in command_pages.commands() if page.path == "commands/predict.md")
    assert "saccade predict runs/my-model < source.txt > target.txt" in page.text
    assert "- `--workers`: " in page.text
    generation, classification = (page.text.index(f"### {task}") for task in ("generation", "classification"))
    assert page.text.index("- `--length-penalty`: ") > generation
    assert page.text.index("- `--threshold`: ") > classification


def test_no_page_shows_raw_latex() -> None:
    for page in hooks.generated_pages():
        prose = re.sub(r"```.*?```|`[^`]*`", "", page.text, flags=re.DOTALL).replace(r"\*", "").replace(r"\|", "")
        assert "\\" not in prose, page.path


def test_signature_of_a_constructor_without_arguments() -> None:
    assert pages.signature(Sparsemax) == "Sparsemax()"
    assert pages.signature(BilinearScore).startswith("BilinearScore(query_dim: int, key_dim: int")
    assert pages.signature(AdditiveScore).startswith("AdditiveScore(\n    query_dim: int,\n    key_dim: int,\n")


def test_unknown_latex_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\\nosuchcommand"):
        equations.math(r"a = \nosuchcommand b")


def test_equation_is_typeset() -> None:
    mathml = equations.math(r"\log x + \operatorname{softmax}(s)_j + |y|^\top + \text{a\_b}", display="block")
    assert '<mi>log</mi><mspace width="0.1667em" /><mi>x</mi>' in mathml
    assert "<mi>softmax</mi><mo" in mathml
    assert 'lspace="0"' in mathml
    assert "<mi>\u22a4</mi>" in mathml
    assert "a_b" in mathml
    assert "\\" not in mathml


def test_docstring_in_parts() -> None:
    def example() -> None:
        r"""Does this.

        .. math:: a = b,
            \qquad c = d

        Here q_i is the (*batch, keys) of `x_1 * y`.

        Args:
            first: one,
                on two lines.
            second, third: two.

        Reference:
            Someone (2015), arXiv:1409.0473.
        """

    parsed = docstrings.parse(example)
    assert parsed.summary == "Does this."
    assert parsed.equations == [r"a = b, \qquad c = d"]
    text = docstrings.render(parsed)
    assert "<mi>q</mi><mi>i</mi>" in text
    assert "`(*batch, keys)`" in text
    assert "`x_1 * y`" in text
    assert "- `first`: one, on two lines.\n- `second`, `third`: two." in text
    assert "[arXiv:1409.0473](https://arxiv.org/abs/1409.0473)" in text


class Resources(HTMLParser):
    """What a page loads: scripts, styles and pictures, not what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe"):
            self.found.append(given.get("src") or "")
        if tag == "link" and given.get("rel") != "canonical":
            self.found.append(given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder


def test_site_has_a_page_for_everything(site: Path) -> None:
    expected = [f"{kind}/{name}.html" for kind, name in MEMBERS]
    expected += [f"commands/{name}.html" for name in COMMANDS]
    expected += [f"heart/{name}.html" for name in pages.HEART]
    expected += ["index.html", "choose.html", "masks.html", "distributions.html"]
    assert not [path for path in expected if not (site / path).is_file()]


def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        resources = Resources()
        resources.feed(path.read_text())
        assert resources.found
        assert not [url for url in resources.found if re.match(r"(https?:)?//", url)]
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text())


def test_search_works_in_pages_opened_from_disk(site: Path) -> None:
    api = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        page = browser.new_page()
        fetched: list[str] = []
        page.on("request", lambda request: fetched.append(request.url))
        page.goto((site / "selections" / "sparsemax.html").as_uri())
        page.fill("input[name=query]", "fusedmax")
        found = page.wait_for_selector(".md-search-result__item h1", timeout=20_000)
        assert found.inner_text() == "Fusedmax"
        assert not [url for url in fetched if url.startswith("http")]
        browser.close()
