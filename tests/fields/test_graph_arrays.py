"""Graphs in folders of NumPy arrays: features stay in their files, and hostile files are refused."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import saccade
from saccade.artifacts import ArtifactError
from saccade.data.errors import DataError
from saccade.fields import Node
from saccade.fields import graph_arrays as arrays
from saccade.fields.graph_files import FEATURES, OF_EDGES, load_graph, read_graph, save_graph

X = np.random.default_rng(5).normal(size=(13, 3))
EDGES = np.random.default_rng(7).integers(0, 13, size=(17, 2))
OF_EDGES_X = np.random.default_rng(11).normal(size=(17, 2))
LABELS = np.arange(13) % 3


def folder_of(path, **given):
    path.mkdir()
    for name, array in {"x": X, "edges": EDGES, "edge_features": OF_EDGES_X, "labels": LABELS, **given}.items():
        np.save(path / f"{name}.npy", array)
    return str(path)


@pytest.fixture
def both(tmp_path):
    np.savez(tmp_path / "graph.npz", x=X, edges=EDGES, edge_features=OF_EDGES_X, labels=LABELS)
    return str(tmp_path / "graph.npz"), folder_of(tmp_path / "graph")


@pytest.mark.parametrize("options", [{}, {"row_normalise": True, "directed": True}])
def test_a_folder_is_the_same_graph_as_an_archive(both, tmp_path, options):
    in_memory, in_files = (Node(graph=path, **options) for path in both)
    assert arrays.is_mapped(in_files.graph.features)
    assert arrays.is_mapped(in_files.graph.edge_features)
    in_files.save(tmp_path)
    assert (tmp_path / FEATURES).exists()
    loaded = Node(graph="gone", **options)
    loaded.load(tmp_path)
    assert arrays.is_mapped(loaded.graph.features)
    expected = in_memory.pad([2, 11, 5])
    for field in (in_files, loaded):
        found = field.pad([2, 11, 5])
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        assert all(torch.equal(field.fixed()[name], tensor) for name, tensor in in_memory.fixed().items())
        assert field.learned() == in_memory.learned()
        assert field.graph.labels == in_memory.graph.labels


def test_other_processes_map_the_file_again(both):
    features = Node(graph=both[1]).graph.features
    packed = pickle.dumps(features, protocol=5)
    assert len(packed) < 500
    copied = pickle.loads(packed)
    assert arrays.is_mapped(copied)
    assert np.array_equal(copied, X)
    assert not arrays.is_mapped(features[2:5])
    assert np.array_equal(pickle.loads(pickle.dumps(features[2:5], protocol=5)), X[2:5])


def test_a_run_without_mapped_features_replaces_one_with_them(both, tmp_path):
    for path in reversed(both):
        save_graph(read_graph(path, None, skip=False), tmp_path)
    assert not (tmp_path / FEATURES).exists()
    assert not (tmp_path / OF_EDGES).exists()
    assert not arrays.is_mapped(load_graph(tmp_path).features)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X.astype(object)}, r"x\.npy is not a plain NumPy array \(it contains Python objects\)"),
        ({"edges": EDGES.astype(object)}, r"edges\.npy is not a plain NumPy array"),
        ({"x": np.asfortranarray(X)}, r"x\.npy .*column by column; save np\.ascontiguousarray"),
        ({"x": np.where(X[3, 1] == X, np.nan, X)}, r"feature 1 of node 3 is nan"),
        ({"x": X[:0]}, r"x must be real numbers of shape \(nodes, dim\)"),
        ({"edge_features": OF_EDGES_X[:5]}, r"17 edges, but edge features for 5"),
        ({"edges": EDGES + 1}, r"row \d+ of edges is"),
    ],
)
def test_bad_arrays(tmp_path, given, message):
    with pytest.raises(DataError, match=message):
        read_graph(folder_of(tmp_path / "bad", **given), None, skip=False)


def test_bad_files(both, tmp_path):
    x = Path(both[1]) / "x.npy"
    whole = x.read_bytes()
    for content, message in (
        (whole[:-1], "announces .13, 3. numbers, more than it contains"),
        (whole[:40], "header of x.npy is damaged"),
        (b"text", "not a plain NumPy array"),
        (whole.replace(b"(13, 3)", b"(-3, 3)"), "announces"),
    ):
        x.write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_graph(both[1], None, skip=False)
    x.unlink()
    with pytest.raises(DataError, match=r"has no file x\.npy\. It has: edge_features, edges, labels\."):
        read_graph(both[1], None, skip=False)
    os.mkfifo(x)
    with pytest.raises(DataError, match="not an ordinary file"):
        read_graph(both[1], None, skip=False)


def test_damaged_rows_of_a_run(both, tmp_path):
    save_graph(read_graph(both[1], None, skip=False), tmp_path)
    path = tmp_path / FEATURES
    whole = path.read_bytes()
    for content in (whole[:-1], b"", whole[:-4] + np.float32(np.inf).tobytes(), whole.replace(b"<f4", b"<i4")):
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match=r"features\.npy is damaged"):
            load_graph(tmp_path)


def test_an_archive_that_grows_out_of_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MOST_BYTES", 1 << 16)
    np.savez_compressed(tmp_path / "zeros.npz", x=np.zeros((1009, 97)), edges=EDGES)
    with pytest.raises(DataError, match=r"x\.npy has [\d,]+ bytes that become 783,\d+; if that is right, store them"):
        read_graph(str(tmp_path / "zeros.npz"), None, skip=False)


LIMITED = """
import resource, sys
import numpy as np
import saccade

def learned(name):
    overrides = {"task.inputs.node.graph": name, "task.inputs.node.sample": "3"}
    options = {"data": {"train": "rows.csv", "valid": "rows.csv"}, "model": {"head_dim": 3}, "overrides": overrides}
    trainer = {"max_steps": 2, "batch_tokens": 5, "validate_every": 2}
    saccade.train("graphs/gat", output=f"run-{name}", trainer=trainer, **options)
    run = saccade.load(f"run-{name}")
    assert len(run.predict(["3", "7"])) == 2
    return run.task.inputs["node"].graph.features

learned("small")  # and whatever has to be imported
with open("/proc/self/status") as file:
    used = int(next(line for line in file if line.startswith("VmData")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + (160 << 20),) * 2)
features = learned("large")
try:
    np.array(features)
except MemoryError:
    print("did not fit")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_graph_larger_than_the_memory_that_is_allowed(tmp_path):
    chance, dim = np.random.default_rng(3), 997
    for name, nodes in (("small", 67), ("large", 100_003)):  # 400 MB
        (tmp_path / name).mkdir()
        x = np.lib.format.open_memmap(tmp_path / name / "x.npy", "w+", np.float32, (nodes, dim))
        x[:67] = chance.normal(size=(67, dim))
        x.flush()
        del x
        np.save(tmp_path / name / "edges.npy", chance.integers(0, nodes, size=(2 * nodes, 2)))
    (tmp_path / "rows.csv").write_text("node,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(31)))
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(saccade.__file__).parents[1])}
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=surroundings)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("did not fit")
