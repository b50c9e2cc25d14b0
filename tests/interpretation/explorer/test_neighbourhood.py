"""Nodes: the axis, and the neighbourhood in a real browser and in the terminal."""

import json

import pytest

from saccade.interpretation.explorer import NodeAxis, render, write_page
from tests.interpretation.explorer.examples import path_graph, star


def number(weight) -> str:
    return f"{float(weight):.4f}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": []}, "names is empty"),
        ({"names": ["a", "b", "a"]}, "nodes 0 and 2 are both called 'a'"),
        ({"names": ["a", "b"], "labels": ["x"]}, "2 nodes but 1 labels"),
        ({"names": ["a", "b"], "centre": 2}, "centre is 2, but there are 2 nodes"),
    ],
)
def test_wrong_axis(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        NodeAxis(**arguments)


@pytest.mark.parametrize("arguments", [{"names": "abc"}, {"names": ["a"], "labels": [3]}])
def test_names_and_labels_are_strings(arguments) -> None:
    with pytest.raises(TypeError, match="list of strings"):
        NodeAxis(**arguments)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "graph.html"
    write_page(path, [*(star(count) for count in (1, 12, 200)), path_graph()], title="Graphs")
    return path


def test_opens_with_the_neighbourhood(visit, place) -> None:
    page = visit(place, "show=1.0.1")
    page.wait_for_selector(".centre")
    assert page.get_by_role("tab", name="Neighbourhood").get_attribute("aria-selected") == "true"
    weights = star(12).maps[0].weights[1, 0]
    order = weights.argsort(descending=True)
    assert page.locator(".top li .number").all_inner_texts() == [number(weights[each]) for each in order]
    widths = {
        int(edge.get_attribute("data-col")): float(edge.get_attribute("stroke-width"))
        for edge in page.locator(".edge-to").all()
    }
    assert sorted(widths, key=widths.__getitem__, reverse=True) == [int(each) for each in order if each > 0]
    assert page.locator(".self").count() == 1  # it attends to itself
    sums = [float(weights[start::3].sum()) for start in (0, 1)]
    assert [text.strip() for text in page.locator(".classes > span").all_inner_texts()] == [
        f"{name} {number(weight).rstrip('0')}" for name, weight in zip(("Theory", "Agents"), sums, strict=True)
    ]


def test_pointing_at_a_node_reads_its_weight(visit, place) -> None:
    page = visit(place, "show=1.0.1")
    page.locator('.node[data-col="6"]').hover()
    weight = number(star(12).maps[0].weights[1, 0, 6]).rstrip("0")
    assert page.inner_text(".tip").split("\n") == ["paper 6", "Theory", weight]
    assert page.inner_text("[role=status] b") == weight
    assert page.locator('.top li[data-focus="true"]').get_attribute("data-col") == "6"
    page.locator('.top li[data-col="7"]').hover()
    page.wait_for_selector(f"[role=status] b:text-is('{number(star(12).maps[0].weights[1, 0, 7]).rstrip('0')}')")


def test_each_of_many_neighbours_can_be_pointed_at(visit, place) -> None:
    page = visit(place, "show=2.0.mean")
    for col in ("17", "100", "101"):
        page.locator(f'.node[data-col="{col}"]').hover()
        assert page.inner_text(".tip bdi >> nth=0") == f"paper {col}"


@pytest.mark.parametrize(("item", "count"), [(0, 1), (1, 12), (2, 200)])
def test_names_never_overlap_and_stay_in_the_drawing(visit, place, item, count) -> None:
    page = visit(place, f"show={item}.0.mean")
    page.wait_for_selector(".centre")
    assert page.locator('.node[data-hop="1"]').count() == count
    boxes = page.locator(".drawing svg > text").evaluate_all(
        """texts => texts.map(text => {
            const { a, b, e, f } = text.getCTM();
            return { x: e, y: f, angle: Math.atan2(b, a), wide: text.getBBox().width };
        })"""
    )
    assert boxes
    assert len(boxes) <= count
    for first in range(len(boxes)):  # names run outwards: neighbours are apart if they start apart
        for second in range(first):
            distance = abs(boxes[first]["x"] - boxes[second]["x"]) + abs(boxes[first]["y"] - boxes[second]["y"])
            assert distance > 10
    frame = page.locator(".drawing").bounding_box()
    for text in page.locator(".drawing svg > text").all()[::7]:
        box = text.bounding_box()
        assert box["x"] >= frame["x"] - 2
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 2


def test_second_hop_and_another_centre(visit, place) -> None:
    page = visit(place, "show=3.0.0")
    page.wait_for_selector(".centre")
    assert page.inner_text(".top h3") == "2 neighbours of b"
    assert page.locator('.node[data-hop="1"]').evaluate_all("each => each.map(one => one.dataset.col).sort()") == [
        "0",
        "2",
    ]
    assert page.locator('.node[data-hop="2"]').evaluate_all("each => each.map(one => one.dataset.col)") == ["3"]
    assert page.locator(".far").count() == 1
    page.locator('.node[data-hop="1"][data-col="2"]').click()
    page.wait_for_selector(".top h3:has-text('2 neighbours of c')")
    weights = path_graph().maps[0].weights[0, 2]
    shown = page.locator(".top li .number").all_inner_texts()
    assert shown == [number(weight) for weight in weights.sort(descending=True).values if weight > 0]
    page.wait_for_url("**pin=query.2*")
    page.locator(".centre").click()
    page.wait_for_selector(".top h3:has-text('2 neighbours of b')")


def test_heads_side_by_side(visit, place) -> None:
    page = visit(place, "show=1.0.mean")
    page.get_by_role("switch", name="Heads side by side").click()
    page.wait_for_url("**split=true*")
    page.wait_for_selector(".heads figure >> nth=2")
    for head in range(3):
        edges = page.locator(f".heads figure >> nth={head} >> .edge-to").evaluate_all(
            "edges => edges.map(edge => [+edge.dataset.col, +edge.getAttribute('stroke-width')])"
        )
        weights = star(12).maps[0].weights[head, 0]
        assert max(edges, key=lambda edge: edge[1])[0] == int(weights[1:].argmax()) + 1


def test_download(visit, place, tmp_path) -> None:
    page = visit(place, "show=1.0.mean")
    for kind, name in (("png", "PNG picture"), ("svg", "SVG drawing")):
        page.get_by_label("Download").click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        waiting.value.save_as(tmp_path / f"view.{kind}")
    assert (tmp_path / "view.png").read_bytes().startswith(b"\x89PNG")
    assert "paper 7" in (tmp_path / "view.svg").read_text()


def test_terminal_lists_the_neighbours() -> None:
    lines = render([path_graph()], "text", width=60).decode().splitlines()
    start = lines.index("conv, mean of 2 heads: b") + 1
    weights = path_graph().maps[0].weights.mean(dim=0)[1]
    order = [int(each) for each in weights.argsort(descending=True) if weights[each] > 0]
    assert len(order) == 3
    names = ["a (x)", "b (y)", "c (x)", "d (y)"]
    assert [line.rsplit(" ", 1)[0].split("  ") for line in lines[start : start + 3]] == [
        [names[each], f"{float(weights[each]):.3f}"] for each in order
    ]


def test_json_and_picture() -> None:
    axis = json.loads(render([path_graph()], "json"))["items"][0]["maps"][0]["keys"]
    assert axis == {"kind": "nodes", "names": ["a", "b", "c", "d"], "labels": ["x", "y", "x", "y"], "centre": 1}
    pytest.importorskip("matplotlib")
    assert render([star(60)], "png").startswith(b"\x89PNG")
