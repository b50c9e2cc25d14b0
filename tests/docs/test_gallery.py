"""The pages of the gallery can be made."""

import importlib.util
import re

import pytest

from tests.docs.code_blocks import ROOT


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "figures" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["recording", "picture", "text", "graph", "transformer"])
def test_page_is_made(gallery, name, tmp_path) -> None:
    (path,) = gallery.make(tmp_path, steps=2, only=name)
    assert path.name == f"{name}.html"
    assert path.stat().st_size < 400_000


def test_gallery_shows_every_page(gallery) -> None:
    text = (ROOT / "docs" / "gallery.md").read_text()
    assert re.findall(r'href="gallery/(\w+)\.html"', text) == list(gallery.PAGES)
    for name in gallery.PAGES:
        assert (ROOT / "docs" / "images" / f"gallery-{name}.png").stat().st_size < 150_000
