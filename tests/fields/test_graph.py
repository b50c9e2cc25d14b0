"""Small graphs: reading them, what is learned, batches, and what a model looked at."""

import json

import pytest
import torch

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import GraphField
from saccade.interpretation.recording import record
from saccade.models import GraphGAT

CELL = Cell("train.jsonl", 7, "graph")
WATER = {"edges": [[0, 1], [0, 2]], "tags": ["O", "H", "H"], "features": [[2], [1], [0]], "edge_tags": ["-", "-"]}
CARBON = {
    "edges": [[0, 1], [1, 2], [0, 1]],
    "tags": ["O", "C", "O"],
    "features": [[2], [0], [1]],
    "edge_tags": list("==="),
}
ALONE = {"edges": [], "tags": ["H"], "features": [[0]], "edge_tags": []}


def fitted(**options):
    field = GraphField(**options)
    field.fit([field.read(each, CELL) for each in (WATER, CARBON, ALONE)])
    return field


def test_what_is_learned(tmp_path):
    field = fitted()
    assert field.kinds == {"tags": ["C", "H", "O"], "edge_tags": ["-", "="]}
    assert field.sizes() == {"dim": 4, "edge_dim": 2}
    told = "3 graphs, 7 nodes, 5 edges, 3 tags, 2 edge tags, 1 duplicate edges, 1 isolated nodes"
    assert field.learned() == told
    assert fitted(degrees=True).sizes()["dim"] == 5
    field.save(tmp_path)
    again = GraphField()
    again.load(tmp_path)
    value = field.read(json.dumps(WATER), CELL)
    assert again.encode(value) == field.encode(value)
    assert field.unknown(field.read({"edges": [], "tags": ["H", "N"]}, CELL)) == ["N"]


def test_batches_do_not_depend_on_padding():
    field = fitted(degrees=True)
    model = GraphGAT(**field.sizes(), classes=2).eval()
    encoded = [field.encode(field.read(each, CELL)) for each in (ALONE, WATER, CARBON)]
    together = model(*field.pad(encoded).values())
    for row, each in enumerate(encoded):
        torch.testing.assert_close(model(*field.pad([each]).values())[0], together[row])
    assert field.size(encoded[1]) == 3


def test_numbering_does_not_matter():
    field = fitted()
    model = GraphGAT(**field.sizes(), classes=2).eval()
    turned = {"edges": [[2, 1], [2, 0]], "tags": ["H", "H", "O"], "features": [[0], [1], [2]], "edge_tags": ["-", "-"]}
    one, other = (model(*field.pad([field.encode(field.read(each, CELL))]).values()) for each in (WATER, turned))
    torch.testing.assert_close(one, other)


def test_edges_alone():
    field = GraphField()
    value = field.read({"edges": [[0, 1]], "nodes": 3}, CELL)
    field.fit([value])
    padded = field.pad([field.encode(value)])
    assert padded["values"].tolist() == [[[1.0], [1.0], [1.0]]]
    assert field.show(value) == "graph of 3 nodes and 1 edges"
    assert field.axis(value).names == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("{", "not a graph in JSON"),
        (3, "not a graph but 3"),
        ({"nodes": 3}, "not a graph"),
        ({"edges": [[0, 1]], "colours": []}, "unknown key 'colours'"),
        ({"edges": [[0]]}, "edge 0 is"),
        ({"edges": [[0, -1]]}, "edge 0 is"),
        ({"edges": [[0, 1.0]]}, "edge 0 is"),
        ({"edges": "01"}, "edges is '01'"),
        ({"edges": [], "tags": []}, "has no nodes"),
        ({"edges": [[0, 5]], "tags": ["a"]}, "an edge leads to node 5, but there are 1 nodes"),
        ({"edges": [], "tags": ["a"], "features": [[1], [2]]}, "has 1 tags, 2 features"),
        ({"edges": [[0, 0]], "nodes": 1, "edge_tags": []}, "1 edges, but 0 edge_tags"),
        ({"edges": [], "features": [[1], [float("nan")]]}, "features 1 is"),
        ({"edges": [], "features": [[1], [1, 2]]}, "different sizes"),
        ({"edges": [], "nodes": True}, "nodes is True"),
        ({"edges": [], "names": ["a", "a"]}, "the same name"),
    ],
)
def test_bad_cells(raw, message):
    with pytest.raises(BadRow, match=rf"train\.jsonl, line 7: .*{message}"):
        GraphField().read(raw, CELL)


def test_other_features_than_in_training():
    field = fitted()
    with pytest.raises(ValueError, match="a model for 1 features cannot read a graph with 2"):
        field.encode(field.read({"edges": [], "features": [[1, 2]]}, CELL))


@pytest.mark.parametrize(
    "changes", [{"tags": [1]}, {"tags": ["a", "a"]}, {"features": [[0.0], [0.0]]}, {"features": [[0.0]]}, {"tags": 3}]
)
def test_damaged_run_folders(tmp_path, changes):
    fitted().save(tmp_path)
    about = json.loads((tmp_path / "graph.json").read_text())
    (tmp_path / "graph.json").write_text(json.dumps({**about, **changes}))
    with pytest.raises(ArtifactError, match=r"graph\.json"):
        GraphField().load(tmp_path)


def test_pytorch_geometric_in_memory():
    pyg = pytest.importorskip("torch_geometric.data", reason="the peer `torch_geometric` is not installed")
    data = pyg.Data(x=torch.tensor([[2.0], [1.0], [0.0]]), edge_index=torch.tensor([[0, 0], [1, 2]]))
    value = GraphField().read(data, CELL)
    assert value == {"nodes": 3, "edges": WATER["edges"], "features": WATER["features"]}


@pytest.mark.parametrize("selection", ["softmax", "sigmoid"])
def test_what_was_looked_at(selection):
    field = fitted()
    model = GraphGAT(**field.sizes(), classes=2, num_layers=2, pooling_selection=selection).eval()
    value = field.read(WATER, CELL)
    with record(model) as trace:
        model(*field.pad([field.encode(value)]).values())
    first, last, pooled = field.maps(value, trace, "safe")
    assert pooled.name == "pooled.pooling"
    assert pooled.queries.names == ["safe"]
    assert pooled.keys.names == ["O 0", "H 1", "H 2"]
    assert first.weights.shape == last.weights.shape == (4, 3, 3)
    torch.testing.assert_close(first.weights.sum(-1), torch.ones(4, 3))
    assert (first.weights[:, 1, 2] == 0).all(), "there is no edge between the two"
    assert field.maps(value, trace, "O 0")[-1].queries.names == ["answer O 0"], "an answer is no node"
    (seen,) = field.attended([value], trace, torch.ones(1, 3, dtype=torch.bool))
    torch.testing.assert_close(seen.weights, pooled.weights.mean(0)[0])


@pytest.mark.parametrize("raw", [{"edges": [], "nodes": 10**12}, {"edges": [[0, 10**30]]}])
def test_a_huge_number_of_nodes_takes_no_memory(raw):
    with pytest.raises(BadRow, match="more than 1,000,000 nodes"):
        GraphField().read(raw, CELL)


@pytest.mark.parametrize("raw", [{"edges": [], "nodes": 10_007}, {"edges": [[0, 1], [1, 20_011]]}])
def test_a_few_bytes_are_no_large_graph(raw):
    with pytest.raises(BadRow, match="nodes of the graph have neither edges nor features"):
        GraphField().read(raw, CELL)
    tagged = {**raw, "nodes": 20_012, "tags": ["a"] * 20_012}
    assert GraphField().read(tagged, CELL)["nodes"] == 20_012


def test_tags_are_texts_that_can_be_saved():
    with pytest.raises(BadRow, match="half a character"):
        GraphField().read('{"edges": [[0, 1]], "tags": ["\\ud800", "b"]}', CELL)
    with pytest.raises(BadRow, match="not text"):
        GraphField().read({"edges": [[0, 1]], "tags": ["a", {}]}, CELL)


def test_large_numbers_are_scaled_exactly_and_never_overflow():
    field = GraphField()
    several = [[[1e9], [1e9 + 1]], [[1e9 + 2], [1e9 + 3], [1e9 + 5]]]
    field.fit([field.read({"edges": [], "features": rows}, CELL) for rows in several])
    whole = torch.tensor([0.0, 1, 2, 3, 5], dtype=torch.float64)
    assert field.moments["features"][0][0] == pytest.approx(1e9 + float(whole.mean()), rel=1e-15)
    assert field.moments["features"][1][0] == pytest.approx(float(whole.std(correction=0)), rel=1e-6)
    far = field.encode(field.read({"edges": [], "features": [[3e38], [1e9]]}, CELL))
    assert far["x"][0] == pytest.approx(1e6)
