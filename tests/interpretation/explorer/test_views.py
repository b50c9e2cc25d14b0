"""Each view in a real browser."""

import pytest

from saccade.interpretation.explorer import write_page
from tests.interpretation.explorer.examples import translation


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    write_page(path, [translation(), translation("second", seed=5)], title="Two models")
    return path


def test_heat_map_reads_the_weight_under_the_cursor(visit, place) -> None:
    page = visit(place, "show=0.2.1&units=pieces&at=3.5")
    weight = translation().maps[2].weights[1, 3, 5].item()
    assert page.inner_text("[role=status] b") == f"{weight:.4f}".rstrip("0")
    assert page.inner_text("[role=status] bdi >> nth=0") == "gleichen"
    assert page.inner_text("[role=status] bdi >> nth=1") == "."
