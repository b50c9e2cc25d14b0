"""Neighbourhoods: features of edges, sampling, hidden nodes and edges, and graphs in memory."""

import numpy as np
import pytest
import torch

import saccade
from saccade.artifacts import ArtifactError
from saccade.configuration import ConfigError
from saccade.data.errors import DataError
from saccade.fields import Node, write_graph
from saccade.fields.graph_data import Graph
from saccade.fields.graph_files import load_graph, read_graph, save_graph
from saccade.fields.neighbours import Neighbours
from saccade.models import GAT

X = np.arange(14, dtype=np.float32).reshape(7, 2)
EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 1], [4, 0], [5, 0], [6, 0], [3, 3]])
OF_EDGES = np.arange(1, 9, dtype=np.float32)[:, None] * [1, 10]


def edges_of(around):
    """{(reader, neighbour): features} of what a model gets, by the numbers in the whole graph."""
    starts, near = around.tensors["starts"], around.nodes[around.tensors["neighbours"].numpy()]
    rows = np.repeat(around.nodes, starts.diff().numpy())
    features = around.tensors.get("edges", torch.zeros(len(near), 1))
    found = dict(zip(zip(rows.tolist(), near.tolist(), strict=True), features.tolist(), strict=True))
    assert len(found) == len(near)
    return found


@pytest.mark.parametrize("directed", [False, True])
def test_features_of_edges(directed):
    near = Neighbours(Graph(X, EDGES, edge_features=OF_EDGES.astype(np.float32)), directed=directed, self_loops=True)
    found = edges_of(near.around(np.arange(7), 2))
    expected = {(n, n): [0.0, 0.0] for n in range(7)}
    for number, (source, to) in reversed(list(enumerate(EDGES.tolist()))):  # the first of two equal edges counts
        expected[to, source] = OF_EDGES[number].tolist()
        if not directed:
            expected[source, to] = OF_EDGES[number].tolist()
    assert found == expected
    assert near.edge_features().shape == (len(expected), 2)


def test_sampling_bounds_every_node_and_keeps_its_own_loop():
    near = Neighbours(Graph(X, EDGES), directed=False, self_loops=True)
    seen = set()
    for seed in range(20):
        around = near.around(np.array([0]), 2, sample=2, generator=torch.Generator().manual_seed(seed))
        found = edges_of(around)
        assert max(np.bincount([row for row, _ in found])) <= 2
        assert (0, 0) in found
        assert set(found) <= set(edges_of(near.around(np.arange(7), 2)))
        seen |= {other for row, other in found if row == 0}
    assert seen == {0, 1, 4, 5, 6}, "all neighbours have a chance"
    again = [near.around(np.array([0]), 2, sample=2, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert edges_of(again[0]) == edges_of(again[1])


def test_hidden_nodes_and_edges():
    near = Neighbours(Graph(X, EDGES), directed=False, self_loops=True)
    among = np.array([True, True, False, True, True, False, True])
    assert {other for _, other in edges_of(near.around(np.array([0]), 3, among=among))} == {0, 1, 4, 6}
    found = edges_of(near.around(np.array([0, 1]), 1, without=np.array([[1, 0]])))
    assert (0, 1) not in found
    assert (1, 0) not in found
    assert (0, 4) in found


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "graph.npz", x=X, edges=EDGES, edge_features=OF_EDGES)
    return str(tmp_path / "graph.npz")


def test_a_model_reads_the_features_of_edges(npz):
    field = Node(graph=npz)
    field.fit(())
    sizes = field.sizes()
    assert sizes == {"dim": 2, "hops": 2, "edge_dim": 2}
    model = GAT(**sizes, classes=3, num_heads=2, head_dim=4, dropout=0.0)
    padded = field.pad([0, 3])
    padded |= {"features": padded["features"] / 10, "edges": torch.randn(len(padded["edges"]), 2)}
    changed = {**padded, "edges": torch.randn_like(padded["edges"])}
    assert not torch.allclose(model(*padded.values()), model(*changed.values()))
    with pytest.raises(ValueError, match="edges have none"):
        model(*list(padded.values())[:4])


def test_inductive_training_sees_training_nodes_alone(npz, tmp_path):
    field = Node(graph=npz, inductive=True)
    field.fit(["0", "1", "3"])
    generator = torch.Generator()
    trained = field.pad([0], generator)
    assert sorted(trained["features"][:, 0].tolist()) == X[[0, 1], 0].tolist()
    assert len(field.pad([0])["features"]) > 2, "answers use the whole graph"
    field.save(tmp_path)
    loaded = Node(graph="gone.npz", inductive=True)
    loaded.load(tmp_path)
    assert torch.equal(loaded.pad([0], generator)["features"], trained["features"])
    (tmp_path / "trained.safetensors").write_bytes(b"")
    with pytest.raises(ArtifactError, match="trained"):
        loaded.load(tmp_path)


def test_sampling_is_for_training(npz):
    field = Node(graph=npz, sample=1, self_loops=False)
    assert len(field.pad([0])["neighbours"]) > 4
    padded = field.pad([0], torch.Generator())
    assert padded["starts"].diff().max() == 1
    with pytest.raises(ValueError, match="sample must be 1 or more"):
        Node(graph=npz, sample=0)


def test_another_graph(npz, tmp_path):
    field = Node(graph=npz)
    assert len(field.graph.features) == 7
    np.savez(tmp_path / "new.npz", x=X[:3], edges=EDGES[:2], edge_features=OF_EDGES[:2])
    field.replace_graph(str(tmp_path / "new.npz"))
    assert len(field.pad([0, 1, 2])["features"]) == 3
    np.savez(tmp_path / "other.npz", x=X[:3], edges=EDGES[:2])
    with pytest.raises(DataError, match="2 features of each edge cannot read a graph with 0"):
        field.replace_graph(str(tmp_path / "other.npz"))


def test_saved_and_loaded(npz, tmp_path):
    graph = read_graph(npz, None, skip=False)
    save_graph(graph, tmp_path)
    assert np.array_equal(load_graph(tmp_path).edge_features, OF_EDGES)
    assert "8 edges with 2," in graph.described()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_tables(tmp_path, suffix):
    nodes = [["name", "a", "b"], ["ann", 1.0, 0.5], ["bob", 0.0, -2.0], ["cy", 0.25, 0.0]]
    edges = [["from", "to", "weight"], ["ann", "bob", 0.5], ["bob", "cy", 2.0]]
    for name, rows in (("nodes", nodes), ("edges", edges)):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
            parquet.write_table(arrow.table(columns), path)
        else:
            comma = "," if suffix == "csv" else "\t"
            path.write_text("".join(comma.join(map(str, row)) + "\n" for row in rows))
    graph = read_graph(str(tmp_path / f"edges.{suffix}"), str(tmp_path / f"nodes.{suffix}"), skip=False)
    assert graph.names == ["ann", "bob", "cy"]
    assert graph.features.tolist() == [[1.0, 0.5], [0.0, -2.0], [0.25, 0.0]]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_features.tolist() == [[0.5], [2.0]]


def test_tables_with_gaps(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,a\nann,1\nbob,0\n")
    (tmp_path / "edges.csv").write_text("from,to,weight\nann,bob,1\nbob,ann\n")
    with pytest.raises(DataError, match="line 3: 2 columns, but the header has 3"):
        read_graph(str(tmp_path / "edges.csv"), str(tmp_path / "nodes.csv"), skip=False)
    (tmp_path / "edges.csv").write_text("from,to,weight\nann,bob,x\n")
    with pytest.raises(DataError, match="line 2: the column 'weight' contains 'x'"):
        read_graph(str(tmp_path / "edges.csv"), str(tmp_path / "nodes.csv"), skip=False)


class Data:
    """What PyTorch Geometric's `Data` looks like."""

    def __init__(self, **given):
        self.x = self.edge_attr = self.y = None
        self.__dict__.update(given)
        self.num_nodes = 7


def test_pytorch_geometric_in_memory(tmp_path):
    data = Data(
        x=torch.tensor(X), edge_index=torch.tensor(EDGES.T), edge_attr=torch.tensor(OF_EDGES), y=torch.arange(7)
    )
    graph = Node(graph=data).graph
    assert np.array_equal(graph.features, X)
    assert np.array_equal(graph.edges, EDGES)
    assert np.array_equal(graph.edge_features, OF_EDGES)
    assert graph.labels == list("0123456")
    write_graph(data, tmp_path / "graph.npz")
    again = read_graph(str(tmp_path / "graph.npz"), None, skip=False)
    assert all(np.array_equal(getattr(graph, name), getattr(again, name)) for name in ("edges", "edge_features"))
    assert again.labels == graph.labels
    assert read_graph(Data(edge_index=torch.tensor(EDGES.T)), None, skip=False).features.tolist() == [[1.0]] * 7
    with pytest.raises(DataError, match="row 0 of edges is"):
        read_graph(Data(x=torch.tensor(X[:1]), edge_index=torch.tensor(EDGES.T)), None, skip=False)


def test_real_data_of_pytorch_geometric():
    pyg = pytest.importorskip("torch_geometric.data", reason="the peer `torch_geometric` is not installed")
    graph = read_graph(pyg.Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES.T)), None, skip=False)
    assert np.array_equal(graph.edges, EDGES)
    assert graph.edge_features is None


def test_graph_in_memory_in_a_configuration(tmp_path, capsys):
    data = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES.T))
    rows = [{"node": place, "label": "ab"[place % 2]} for place in range(7)]
    settings = {"data": {"train": rows, "valid": rows}, "trainer": {"max_steps": 2}}
    given = {"class": "node", "graph": data}
    run = saccade.train("graphs/gat", task={"inputs": {"node": given}}, output=tmp_path / "a", **settings)
    made = saccade.train("graphs/gat", task={"inputs": {"node": Node(graph=data)}}, output=tmp_path / "b", **settings)
    loaded = saccade.load(tmp_path / "a")
    nodes = list(range(7))
    assert loaded.predict(nodes)[3].details == run.predict(nodes)[3].details
    assert made.task.inputs["node"].graph.edges.tolist() == loaded.task.inputs["node"].graph.edges.tolist()
    more = saccade.train(resume=tmp_path / "a", data=settings["data"], overrides={"trainer.max_steps": 3})
    assert more.result.step == 3
    with pytest.raises(ConfigError, match="graph must be text or in Python, a GeometricData, got 3"):
        saccade.train("graphs/gat", task={"inputs": {"node": {**given, "graph": 3}}}, output=tmp_path / "c", **settings)
    capsys.readouterr()


@pytest.mark.parametrize("bad_rows", ["error", "skip"])
def test_a_bad_row_of_the_graph_is_not_one_of_the_data(tmp_path, capsys, bad_rows):
    (tmp_path / "edges.csv").write_text("from,to\nann,bob\nbob,zoe\n")
    (tmp_path / "nodes.csv").write_text("node,age\nann,1\nbob,2\n")
    (tmp_path / "train.csv").write_text("node,label\nann,x\nbob,y\n")
    options = {"graph": str(tmp_path / "edges.csv"), "nodes": str(tmp_path / "nodes.csv")}
    with pytest.raises(DataError, match=r"line 3: there is no node 'zoe'\. .*bad_edges skip\)\.$"):
        saccade.train(
            "graphs/gat",
            task={"inputs": {"node": {"class": "node", **options}}},
            data={"train": str(tmp_path / "train.csv"), "bad_rows": bad_rows},
            output=tmp_path / "run",
        )
    capsys.readouterr()
