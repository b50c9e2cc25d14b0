"""Nodes: the files of a graph, the neighbourhoods of batches, and every kind of bad input."""

import gzip
import json
import zipfile

import numpy as np
import pytest
import torch

from saccade.artifacts import ArtifactError, pack_tensors
from saccade.data.cell import Cell
from saccade.data.errors import BadRow, DataError
from saccade.fields.graph_files import FILE, NODES, load_graph, read_graph, save_graph
from saccade.fields.node import CACHED, Node
from saccade.fields.node_looks import attending_layers
from saccade.fields.node_maps import DRAWN
from saccade.interpretation.recording import record
from saccade.models.gat import GAT

CELL = Cell("train.csv", 7, "node")
X = np.array([[1, 0, 3], [0, 2, 0], [0, 0, 0], [4, 0, 4], [0, 0, 1]], dtype=np.float32)
EDGES = np.array([[0, 1], [1, 2], [2, 0], [0, 1], [3, 3]])  # one twice, a loop, and node 4 has none


def archive(path, **arrays):
    np.savez(path, **{"x": X, "edges": EDGES, **arrays})
    return str(path)


def csr(x):
    rows, columns = x.nonzero()
    starts = np.searchsorted(rows, np.arange(len(x) + 1))
    return {"x_indptr": starts, "x_indices": columns, "x_data": x[rows, columns], "x_shape": np.array(x.shape)}


@pytest.fixture
def npz(tmp_path):
    return archive(tmp_path / "graph.npz")


def tables(folder, suffix="csv", *, nodes=None, edges=None):
    comma = "," if suffix == "csv" else "\t"
    nodes = nodes or [["name", "a", "b"], ["ann", 1, 0.5], ["bob", 0, -2], ["cy", "3e-1", 0]]
    edges = edges or [["from", "to"], ["ann", "bob"], ["bob", "cy"]]
    paths = folder / f"edges.{suffix}", folder / f"nodes.{suffix}"
    for path, rows in zip(paths, (edges, nodes), strict=True):
        path.write_text("".join(comma.join(map(str, row)) + "\n" for row in rows))
    return tuple(map(str, paths))


def neighbours(field, name):
    """By name, from the tensors of one node with one hop."""
    padded = field.pad([field.encode(name)])
    around = field._around(np.array([field.encode(name)]))
    start, end = padded["starts"][padded["values"][0] :][:2].tolist()
    return [field.graph.name(node) for node in around.nodes[padded["neighbours"][start:end].numpy()].tolist()]


def test_archives_dense_and_sparse(tmp_path, npz):
    dense = read_graph(npz, None, skip=False)
    sparse = str(tmp_path / "sparse.npz")
    np.savez(sparse, edges=EDGES.astype(np.int16), **csr(X))
    for graph in (dense, read_graph(sparse, None, skip=False)):
        assert np.array_equal(graph.features, X)
        assert graph.features.dtype == np.float32
        assert np.array_equal(graph.edges, EDGES)
        assert graph.edges.dtype == np.int64
        assert graph.names is None
        assert graph.labels is None


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_tables(tmp_path, suffix):
    field = Node(graph=tables(tmp_path, suffix)[0], nodes=str(tmp_path / f"nodes.{suffix}"), hops=1)
    assert field.graph.names == ["ann", "bob", "cy"]
    assert np.allclose(field.graph.features, [[1, 0.5], [0, -2], [0.3, 0]])
    assert field.graph.edges.tolist() == [[0, 1], [1, 2]]
    assert field.read(" bob ", CELL) == "bob"
    assert neighbours(field, "bob") == ["ann", "bob", "cy"]
    assert field.sizes() == {"dim": 2, "hops": 1}


def test_tables_may_be_gzipped_quoted_and_have_blank_lines(tmp_path):
    edges, nodes = tables(tmp_path, nodes=[["name", "a"], ['"smith, j."', 1], [], ["b", 2]], edges=[["s", "t"], []])
    with gzip.open(f"{nodes}.gz", "wb") as file, open(nodes, "rb") as plain:
        file.write(plain.read())
    graph = read_graph(edges, f"{nodes}.gz", skip=False)
    assert graph.names == ["smith, j.", "b"]
    assert graph.edges.shape == (0, 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"0": "012", "1": "012", "3": "3", "4": "4"}),
        ({"self_loops": False}, {"0": "12", "1": "02", "3": "3", "4": ""}),  # the loop in the file stays
        ({"directed": True}, {"0": "02", "1": "01", "2": "12", "4": "4"}),
        ({"directed": True, "self_loops": False}, {"0": "2", "1": "0", "3": "3", "4": ""}),
    ],
)
def test_neighbours(npz, options, expected):
    field = Node(graph=npz, hops=1, **options)
    assert {name: "".join(neighbours(field, name)) for name in expected} == expected


def test_rows_are_normalised_by_their_sum(npz):
    features = Node(graph=npz, row_normalise=True).pad([0, 1, 2, 3, 4])["features"]
    expected = torch.tensor([[0.25, 0, 0.75], [0, 1, 0], [0, 0, 0], [0.5, 0, 0.5], [0, 0, 1]])
    torch.testing.assert_close(features, expected)


def random_field(tmp_path, *, hops, **options):
    chance = np.random.default_rng(3)
    x = chance.normal(size=(40, 5)).astype(np.float32)
    path = archive(tmp_path / "random.npz", x=x, edges=chance.integers(0, 36, size=(30, 2)))  # the last four alone
    return Node(graph=path, hops=hops, **options)


@pytest.mark.parametrize("options", [{}, {"self_loops": False}, {"directed": True}])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_batch_gets_the_same_logits_as_the_whole_graph(tmp_path, hops, options):
    field = random_field(tmp_path, hops=hops, **options)
    model = GAT(dim=5, classes=3, hops=hops, num_layers=hops, num_heads=2, head_dim=4).double().eval()

    def logits(nodes):
        padded = field.pad(nodes)
        return model(padded["values"], padded["features"].double(), padded["starts"], padded["neighbours"])

    whole = logits(range(40))
    for nodes in ([5], [7, 2, 7], [39], [39, 0, 12]):
        torch.testing.assert_close(logits(nodes), whole[nodes], rtol=0, atol=1e-12)
    assert len(field._around(np.array([5])).nodes) < 40, "a batch must not need the whole graph"


def test_more_hops_than_the_graph_has_take_no_time(npz):
    near, far = Node(graph=npz, hops=len(X)), Node(graph=npz, hops=2**31 - 2)
    assert np.array_equal(near._around(np.array([0])).nodes, far._around(np.array([0])).nodes)


def test_the_same_batch_in_another_order_is_not_searched_again(tmp_path, monkeypatch):
    field = random_field(tmp_path, hops=2)
    searched = []
    _ = field.graph
    search = field._neighbours.around

    def around(centres, hops, **options):
        searched.append(centres.tolist())
        return search(centres, hops, **options)

    monkeypatch.setattr(field._neighbours, "around", around)
    first, second = field.pad([3, 9]), field.pad([9, 3])
    assert searched == [[3, 9]]
    assert first["values"].tolist() == second["values"].tolist()[::-1]
    for node in range(CACHED + 3):
        field.pad([node])
    assert len(field._recent) == CACHED


@pytest.mark.parametrize("raw", ["3", 3, 3.0, " 3 ", "003"])
def test_numbers(npz, raw):
    field = Node(graph=npz)
    assert field.read(raw, CELL) == "3"
    assert field.encode("3") == 3
    assert field.show("3") == "3"


@pytest.mark.parametrize("raw", ["5", "-1", "x", 1.5, "1e0", 10**30, None, ""])
def test_unknown_numbers_name_the_row(npz, raw):
    with pytest.raises(BadRow, match=r"train\.csv, line 7: "):
        Node(graph=npz).read(raw, CELL)


def test_unknown_nodes_get_a_hint(tmp_path, npz):
    with pytest.raises(BadRow, match=r"line 7: the graph has no node '5'\. Nodes are numbered from 0 to 4\."):
        Node(graph=npz).read("5", CELL)
    field = Node(graph=tables(tmp_path)[0], nodes=str(tmp_path / "nodes.csv"))
    with pytest.raises(BadRow, match=r"the graph has no node 'bbo'\. .*bob"):
        field.read("bbo", CELL)
    with pytest.raises(BadRow, match=r"no node 'zzz'\. Correct the name"):
        field.read("zzz", CELL)


def test_what_is_learned(tmp_path, npz):
    wrong = "1 of them duplicates, 1 from a node to itself, 2 isolated nodes"
    assert Node(graph=npz).learned() == f"5 nodes with 3 features, 5 edges, {wrong}"
    bad = archive(tmp_path / "bad.npz", edges=np.array([[0, 1], [0, 9], [-1, 2]]))
    field = Node(graph=bad, bad_edges="skip")
    assert field.learned() == "5 nodes with 3 features, 1 edges, 3 isolated nodes, 2 edges to unknown nodes left out"


def test_bad_edges_of_a_table_are_skipped_and_counted(tmp_path):
    edges, nodes = tables(tmp_path, edges=[["s", "t"], ["ann", "zoe"], ["ann", "bob"], ["x", "y"]])
    graph = read_graph(edges, nodes, skip=True)
    assert graph.edges.tolist() == [[0, 1]]
    assert graph.skipped == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edges": np.array([[0, 1], [1, 5]])}, r"row 1 of edges is \(1, 5\).* from 0 to 4\. .*bad_edges: skip"),
        ({"edges": np.array([[-1, 1]])}, r"row 0 of edges is \(-1, 1\)"),
        ({"edges": EDGES.T}, r"edges must be integers of shape \(count, 2\), got int64 \(2, 5\)\. Transpose them"),
        ({"edges": EDGES.astype(float)}, r"edges must be integers.*float64"),
        ({"edges": EDGES[:, 0]}, r"edges must be integers of shape"),
        ({"x": np.where(X == 2, np.nan, X)}, r"feature 1 of node 1 is nan\. Replace it"),
        ({"x": np.where(X == 2, np.inf, X)}, r"feature 1 of node 1 is inf"),
        ({"x": X[0]}, r"x must be real numbers of shape \(nodes, dim\), got float32 \(3,\)"),
        ({"x": X.astype(str)}, r"x must be real numbers"),
        ({"x": X.astype(complex)}, r"x must be real numbers"),
        ({"x": X[:0]}, r"x must be real numbers of shape"),
        ({"x": X.astype(object)}, r"not a NumPy archive of plain arrays \(.*pickle.*np\.savez"),
        ({"labels": np.array([1, 2])}, r"labels must be one integer or string per node, shape \(5,\), got"),
        ({"labels": np.zeros(5)}, r"labels must be one integer or string per node.*float64"),
    ],
)
def test_bad_archives(tmp_path, arrays, message):
    path = archive(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=rf"bad\.npz.*{message}"):
        read_graph(path, None, skip=False)


@pytest.mark.parametrize(
    "damage",
    [
        {"x_indptr": np.array([0, 2, 1, 3, 5, 6])},
        {"x_indptr": np.array([0, 2])},
        {"x_indices": np.array([0, 2, 1, 0, 2, 3])},
        {"x_indices": np.array([0, 2, 1, 0, 2, -1])},
        {"x_indices": np.array([0.0, 2, 1, 0, 2, 2])},
        {"x_data": np.ones(5)},
        {"x_data": np.array(["a"] * 6)},
        {"x_shape": np.array([5])},
        {"x_shape": np.array([2**40, 2**40])},
        {"x_shape": np.array([-5, -3])},
    ],
)
def test_bad_sparse_features(tmp_path, damage):
    path = str(tmp_path / "bad.npz")
    np.savez(path, edges=EDGES, **{**csr(X), **damage})
    with pytest.raises(DataError, match=r"bad\.npz: x_indptr, .* do not form a CSR matrix"):
        read_graph(path, None, skip=False)


def test_missing_and_strange_archives(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.npz"):
        read_graph(str(tmp_path / "no.npz"), None, skip=False)
    for name, content in (("text", b"edges"), ("cut", (tmp_path / "text.npz"))):
        path = tmp_path / f"{name}.npz"
        if name == "cut":
            archive(path)
            content = path.read_bytes()[:200]
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}\.npz is not a NumPy archive"):
            read_graph(str(path), None, skip=False)
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(DataError, match=r"one\.npz is not a NumPy archive.*a single array"):
        read_graph(str(tmp_path / "one.npz"), None, skip=False)
    np.savez(tmp_path / "less.npz", x=X)
    with pytest.raises(DataError, match=r"less\.npz has no array 'edges'\. It has: x\."):
        read_graph(str(tmp_path / "less.npz"), None, skip=False)
    np.savez(tmp_path / "less.npz", edges=EDGES, x_indptr=X)
    with pytest.raises(DataError, match=r"has no array 'x_indices'"):
        read_graph(str(tmp_path / "less.npz"), None, skip=False)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([["n", "a"], ["x", 1], ["x", 2]], r"nodes\.csv, line 3: the node 'x' is already on line 2\. Remove"),
        (
            [["n", "a"], ["x", "nan"]],
            r"line 2: the column 'a' contains 'nan', which is not a finite number\. Correct",
        ),
        ([["n", "a", "b"], ["x", 1, "red"]], r"nodes\.csv, line 2: the column 'b' contains 'red'"),
        ([["n", "a"], ["x", "1e60"]], r"nodes\.csv, line 2: the column 'a' contains '1e60'"),
        ([["n", "a"], ["x", ""]], r"nodes\.csv, line 2: the column 'a' contains ''"),
        ([["n", "a", "b"], ["x", 1, 2], ["y", 1]], r"nodes\.csv, line 3: 2 columns instead of 3 like the rows above"),
        ([["n", "a"], ["x"]], r"nodes\.csv, line 2: 1 columns instead of a name and at least one feature"),
        ([["n", "a"], ["", 1]], r"nodes\.csv, line 2: the name is empty"),
        ([["n", "a"]], r"nodes\.csv has no nodes below its header"),
    ],
)
def test_bad_tables_of_nodes(tmp_path, nodes, message):
    with pytest.raises(DataError, match=message):
        read_graph(*tables(tmp_path, nodes=nodes), skip=False)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([["s", "t"], ["ann", "zoe"]], r"edges\.csv, line 2: there is no node 'zoe'\. .*bad_edges: skip"),
        ([["s", "t"], ["ann", "bob"], ["cy"]], r"edges\.csv, line 3: one column instead of two"),
        ([["ann", "bob"], ["bob", "cy"]], r"edges\.csv, line 1: an edge from 'ann' to 'bob' instead of a header"),
        ([["s", "t"], ["ann", '"bob']], r"edges\.csv, line 2: a quote is opened and never closed"),
    ],
)
def test_bad_tables_of_edges(tmp_path, edges, message):
    with pytest.raises(DataError, match=message):
        read_graph(*tables(tmp_path, edges=edges), skip=False)


def test_the_wrong_pair_of_files(tmp_path, npz):
    edges, nodes = tables(tmp_path)
    with pytest.raises(DataError, match=r"graph\.npz already has the features of the nodes"):
        read_graph(npz, nodes, skip=False)
    with pytest.raises(DataError, match=r"edges\.csv has only edges: name the file"):
        read_graph(edges, None, skip=False)
    with pytest.raises(FileNotFoundError, match=r"nodez\.csv.*Did you mean .*nodes\.csv"):
        read_graph(edges, str(tmp_path / "nodez.csv"), skip=False)


def test_bad_arguments():
    with pytest.raises(ValueError, match="hops"):
        Node(graph="graph.npz", hops=0)
    with pytest.raises(ValueError, match="bad_edges must be 'error' or 'skip', got 'drop'"):
        Node(graph="graph.npz", bad_edges="drop")


def test_a_graph_is_saved_whole(tmp_path, npz):
    named = Node(graph=tables(tmp_path)[0], nodes=str(tmp_path / "nodes.csv"))
    labelled = Node(graph=archive(tmp_path / "labels.npz", labels=np.array([2, 0, -1, 1, 1])))
    for number, field in enumerate((Node(graph=npz, row_normalise=True), named, labelled)):
        folder = tmp_path / str(number)
        folder.mkdir()
        field.fit([])
        field.save(folder)
        again = Node(graph="gone.npz", row_normalise=field.row_normalise)
        again.load(folder)
        assert again.learned() == field.learned()
        assert again.graph.names == field.graph.names
        assert again.graph.labels == field.graph.labels
        nodes = list(range(len(field.graph.features)))
        for name, tensor in field.pad(nodes).items():
            assert torch.equal(again.pad(nodes)[name], tensor)
    assert labelled.graph.labels == ["2", "0", "", "1", "1"]


GOOD = {"features": torch.ones(2, 3), "edges": torch.tensor([[0, 1]])}
ABOUT = {"names": ["a", "b"], "labels": None, "skipped": 0}


@pytest.mark.parametrize(
    ("tensors", "about", "message"),
    [
        ({**GOOD, "features": torch.ones(2)}, ABOUT, "features must be finite"),
        ({**GOOD, "features": torch.ones(2, 3).double()}, ABOUT, "features must be finite"),
        ({**GOOD, "features": torch.ones(0, 3)}, ABOUT, "features must be finite"),
        ({**GOOD, "features": torch.full((2, 3), torch.nan)}, ABOUT, "features must be finite"),
        ({"edges": GOOD["edges"]}, ABOUT, "it has no features"),
        ({"features": GOOD["features"]}, ABOUT, "it has no edges"),
        ({**GOOD, "edges": torch.tensor([[0, 1, 1]])}, ABOUT, "it has no edges"),
        ({**GOOD, "edges": torch.tensor([[0.0, 1.0]])}, ABOUT, "it has no edges"),
        ({**GOOD, "edges": torch.tensor([[0, 2]])}, ABOUT, "an edge refers to a node that does not exist"),
        ({**GOOD, "edges": torch.tensor([[0, -1]])}, ABOUT, "an edge refers to a node that does not exist"),
        ({**GOOD, "edge_features": torch.zeros(3, 1)}, ABOUT, "edge_features must have one row"),
        (GOOD, {**ABOUT, "names": ["a"]}, "names must have one text for each node"),
        (GOOD, {**ABOUT, "names": ["a", 1]}, "names must have one text for each node"),
        (GOOD, {**ABOUT, "names": ["a", "a"]}, "two nodes have the same name"),
        (GOOD, {**ABOUT, "names": "ab"}, "names"),
        (GOOD, {**ABOUT, "labels": ["x"]}, "labels must have one text for each node"),
        (GOOD, {**ABOUT, "skipped": -1}, "skipped"),
        (GOOD, {"names": None}, "labels"),
        (GOOD, [], "not an object"),
    ],
)
def test_damaged_run_folders(tmp_path, tensors, about, message):
    (tmp_path / FILE).write_bytes(pack_tensors(tensors))
    (tmp_path / NODES).write_text(json.dumps(about))
    with pytest.raises(ArtifactError, match=rf"is damaged: .*{message}"):
        load_graph(tmp_path)


def test_damaged_bytes(tmp_path, npz):
    save_graph(read_graph(npz, None, skip=False), tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-7])
    with pytest.raises(ArtifactError, match=FILE):
        load_graph(tmp_path)
    (tmp_path / FILE).write_bytes(whole)
    (tmp_path / NODES).write_text('{"names": ')
    with pytest.raises(ArtifactError, match=NODES):
        load_graph(tmp_path)


def explained(model, field, value):
    with record(model) as trace:
        model(*field.pad([field.encode(value)]).values())
    return field.maps(value, trace, "label")


def test_maps_show_the_weights_that_the_answer_depends_on(tmp_path):
    field = random_field(tmp_path, hops=2)
    model = GAT(dim=5, classes=3, hops=2, num_heads=2, head_dim=4).eval()
    first, last, joined = explained(model, field, "5")
    assert joined.name == "all layers"
    assert first.queries.names == last.keys.names
    by_hand = last.weights.mean(0) @ first.weights.mean(0)
    shares = dict(zip(joined.keys.names, joined.weights[0, 0].tolist(), strict=True))
    by_name = dict(zip(first.keys.names, by_hand[0].tolist(), strict=True))
    assert shares == pytest.approx({name: share for name, share in by_name.items() if share > 0}, abs=1e-6)
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-5)
    with record(model) as trace:
        model(*field.pad(range(40)).values())
    near = neighbours(field, "5")
    assert first.queries.names == near, "the first layer also matters at the neighbours"
    assert last.queries.names == ["5"]
    assert last.keys.names == near
    layers = attending_layers(trace, field._around(np.arange(40)).blocks())
    for shown, (_, blocks) in zip((first, last), layers, strict=True):
        whole = torch.zeros(shown.weights.shape[0], 40, 40)
        for block, weights in blocks:
            for row, node in enumerate(block.rows.tolist()):
                for place in range(int(block.mask[row].sum())):
                    whole[:, node, block.neighbours[row, place]] = weights[row, :, place]
        rows, columns = ([int(name) for name in axis.names] for axis in (shown.queries, shown.keys))
        torch.testing.assert_close(shown.weights, whole[:, rows][:, :, columns])
        torch.testing.assert_close(shown.weights.sum(-1), torch.ones(shown.weights.shape[:2]))
        assert shown.keys.names[shown.keys.centre] == "5"


def test_a_large_neighbourhood_shows_the_node_alone(tmp_path):
    edges = np.array([[0, n] for n in range(1, 80)])
    path = archive(tmp_path / "star.npz", x=np.ones((80, 5), np.float32), edges=edges, labels=np.arange(80) % 3)
    field = Node(graph=path)
    maps = explained(GAT(dim=5, classes=3, hops=2).eval(), field, "7")
    *maps, joined = maps
    assert [each.queries.names for each in maps] == [["7"], ["7"]]
    assert [each.keys.names for each in maps] == [["0", "7"], ["0", "7"]]
    assert len(joined.keys) == DRAWN, "only those with the largest shares are drawn"
    assert joined.keys.names[joined.keys.centre] == "7"
    assert maps[0].keys.labels == ["0", "1"]
    assert field.axis("0").names == [str(n) for n in range(80)]
    assert field.axis("7").centre == 1


def test_what_decided_each_node_of_a_batch(tmp_path):
    field = random_field(tmp_path, hops=2, self_loops=False)
    model = GAT(dim=5, classes=3, hops=2, num_heads=2, head_dim=4, output_heads=3).eval()
    nodes = ["12", "39", "5", "12"]
    with record(model) as trace:
        model(*field.pad([field.encode(node) for node in nodes]).values())
    found = field.attended(nodes, trace)
    assert found[1][:2] == (["39"], torch.zeros(1)), "an isolated node attends to nothing"
    for place in (0, 2, 3):
        *_, last, _ = explained(model, field, nodes[place])
        names, weights, _ = found[place]
        assert sorted(names, key=int) == neighbours(Node(graph=field.files[0], hops=1, self_loops=False), nodes[place])
        by_name = dict(zip(last.keys.names, last.weights.mean(0)[0].tolist(), strict=True))
        assert weights.tolist() == pytest.approx([by_name[name] for name in names], abs=1e-6)
        assert float(weights.sum()) == pytest.approx(1.0, abs=1e-6)


def test_numbers_beyond_32_bits_and_broken_texts_are_refused(tmp_path):
    edges, x = np.array([[0, 1]]), np.ones((2, 1), np.float32)
    for more, problem in (
        ({"edge_features": np.array([[1e39]])}, "edge_features 0 of edge 0 is 1e\\+39"),
        ({"labels": np.array(["\ud800", "b"])}, "half a character"),
    ):
        path = tmp_path / "bad.npz"
        np.savez(path, edges=edges, x=x, **more)
        with pytest.raises(DataError, match=problem):
            read_graph(str(path), None, skip=False)


@pytest.mark.parametrize(
    "header", ["((((", "'''", "{[]: 1}", "{'descr': ('<f4',), 'fortran_order': False, 'shape': (2,)}"]
)
def test_damaged_headers_of_arrays_are_refused(tmp_path, header):
    path = tmp_path / "bad.npz"
    text = header.encode() + b"\n"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("edges.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64))
    with pytest.raises(DataError, match="header of edges\\.npy is damaged"):
        read_graph(str(path), None, skip=False)
