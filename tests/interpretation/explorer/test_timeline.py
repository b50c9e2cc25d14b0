"""Visits: the axis, what codes contribute, and the timeline in a real browser and in the terminal."""

import json
import math
from dataclasses import replace

import pytest
import torch

from saccade.interpretation.explorer import Contributions, VisitAxis, render, write_page
from tests.interpretation.explorer.examples import record

MINUS = "\N{MINUS SIGN}"


def percent(probability) -> str:
    return f"{100 * float(probability):.1f} %"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": [], "codes": []}, "at least one visit"),
        ({"names": ["a", "b"], "codes": [[]]}, "2 visits but 1 codes"),
        ({"names": ["a"], "codes": [[]], "days": [1.0, 2.0]}, "1 visits but 2 days"),
    ],
)
def test_wrong_axis(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        VisitAxis(**arguments)


def test_wrong_contributions() -> None:
    given = {"outcomes": ["a"], "link": "logistic", "bias": torch.zeros(1), "static": torch.zeros(0, 1)}
    with pytest.raises(ValueError, match="link must be"):
        Contributions(**{**given, "link": "probit"}, codes=[])
    with pytest.raises(ValueError, match="finite numbers for 1 outcomes"):
        Contributions(**given, codes=[torch.tensor([[math.nan]])])
    item = record()
    with pytest.raises(ValueError, match="do not fit the codes"):
        replace(item.maps[0], contributions=[Contributions(**given, codes=[torch.zeros(1, 1)])])
    with pytest.raises(ValueError, match="one for each row"):
        replace(item.maps[0], contributions=[])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "visits.html"
    items = [record(), record(each_visit=True), record(link="softmax", outcomes=("home", "ward", "dead"))]
    write_page(path, items, title="Records")
    return path


def test_opens_with_the_timeline(visit, place) -> None:
    page = visit(place)
    assert page.get_by_role("tab", name="Timeline").get_attribute("aria-selected") == "true"
    found = record().maps[0].contributions[0]
    assert page.locator(".before").inner_text() == percent(found.probabilities()[0])
    assert page.locator(".after").count() == 0
    assert page.locator("section.visit").count() == 4  # the patient's, and three visits
    assert page.locator(".visit-dot").count() == 3
    shown = {
        each.get_attribute("data-code"): each.locator(".number").inner_text()
        for each in page.locator("[data-code]").all()
    }
    values = {f"{visit}.{k}": float(v[0]) for visit, codes in enumerate(found.codes) for k, v in enumerate(codes)}
    values |= {f"-1.{k}": float(v[0]) for k, v in enumerate(found.static)}
    assert shown == {key: f"{MINUS if value < 0 else '+'}{abs(value):.3f}" for key, value in values.items()}
    for key, value in values.items():  # bars stand on the side that they speak for
        assert page.locator(f'[data-code="{key}"] .{"against" if value < 0 else "for"}').count() == 1
    assert page.get_by_text("<b>pain</b>").count() == 1  # as text


def test_a_removed_code_is_subtracted(visit, place) -> None:
    page = visit(place)
    found = record().maps[0].contributions[0]
    score = found.scores()[0]
    page.locator('[data-code="2.0"]').click()
    without = score - found.codes[2][0, 0]
    assert page.locator(".after").inner_text() == percent(without.sigmoid())
    page.locator('[data-code="-1.1"]').click()
    without = without - found.static[1, 0]
    assert page.locator(".after").inner_text() == percent(without.sigmoid())
    assert page.locator('[data-gone="true"]').count() == 2
    page.locator('[data-code="2.0"]').click()  # back again
    assert page.locator(".after").inner_text() == percent((score - found.static[1, 0]).sigmoid())
    page.get_by_role("button", name="Restore the code").click()
    assert page.locator(".after").count() == 0


def test_outcomes_that_compete(visit, place) -> None:
    page = visit(place, "show=2.0.0")
    found = record(link="softmax", outcomes=("home", "ward", "dead")).maps[0].contributions[0]
    page.get_by_label("Outcome").select_option("2")
    assert page.locator(".before").inner_text() == percent(found.probabilities()[2])
    page.locator('[data-code="0.1"]').click()
    assert page.locator(".after").inner_text() == percent((found.scores() - found.codes[0][1]).softmax(0)[2])


def test_the_answer_at_each_visit(visit, place) -> None:
    page = visit(place, "show=1.0.0")
    several = record(each_visit=True).maps[0].contributions
    assert page.locator(".before").inner_text() == percent(several[2].probabilities()[0])
    page.get_by_label("Visit", exact=True).select_option("0")
    assert page.locator(".before").inner_text() == percent(several[0].probabilities()[0])
    assert page.locator("section.visit").count() == 2  # later visits are not known yet


def test_as_text_and_data() -> None:
    text = render([record()], "text").decode()
    found = record().maps[0].contributions[0]
    chosen = int(found.scores().argmax())
    assert f"contributions to {found.outcomes[chosen]}: score {float(found.scores()[chosen]):+.3f}" in text
    assert "2024-08-01    fever 38.9" in text
    data = json.loads(render([record(each_visit=True)], "json"))["items"][0]["maps"][0]
    assert data["keys"]["kind"] == "visits"
    assert len(data["contributions"]) == 3
    assert render([record()], "png").startswith(b"\x89PNG")
