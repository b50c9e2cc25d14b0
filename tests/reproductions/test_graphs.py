"""The command at toy scale, on a graph that has the form of Cora's."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.reproductions.scripts import script

graphs = script("graphs")


@pytest.fixture
def data(tmp_path):
    """Two groups of nodes with edges inside each, and one telling feature."""
    chance = np.random.default_rng(1)
    labels = np.arange(40) % 2
    edges = np.array([(a, b) for a, b in chance.integers(0, 40, size=(300, 2)) if labels[a] == labels[b]])
    x = np.stack([labels, 1 - labels, np.ones(40)], axis=1).astype(np.float32)
    rows, columns = x.nonzero()
    sparse = {"x_indices": columns, "x_data": x[rows, columns], "x_shape": np.array(x.shape)}
    nodes = chance.permutation(40)
    splits = {"train": nodes[:10], "valid": nodes[10:20], "test": nodes[20:]}
    starts = np.searchsorted(rows, np.arange(41))
    np.savez(tmp_path / "cora.npz", edges=edges, labels=labels, x_indptr=starts, **sparse, **splits)
    return tmp_path / "cora.npz"


def test_models_are_trained_and_measured(data, tmp_path):
    output = tmp_path / "results"
    arguments = ["--data", str(data), "--output", str(output), "--runs", str(tmp_path / "runs"), "--steps", "2"]
    assert graphs.main([*arguments, "--seeds", "1", "2", "--scores", "gat", "gatv2"]) == 0
    found = json.loads((output / "results.json").read_text())
    for score in ("gat", "gatv2"):
        seeds = found[score]["seeds"]
        assert [each["seed"] for each in seeds] == [1, 2]
        assert all(each["steps"] == 2 and 0 <= each["accuracy"] <= 100 for each in seeds)
        assert found[score]["accuracy"] == pytest.approx(sum(each["accuracy"] for each in seeds) / 2)
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + 2
    assert len({row.count("|") for row in rows}) == 1


def test_the_splits_are_written_with_their_labels(data, tmp_path):
    files = graphs.write_splits(data, tmp_path)
    lines = Path(files["test"]).read_text().splitlines()
    assert lines[0] == "node,label"
    assert len(lines) == 21
    assert all(int(line.split(",")[0]) % 2 == int(line.split(",")[1]) for line in lines[1:])


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CORA", raising=False)
    assert script("graphs").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        graphs.main(["--data", str(tmp_path / "no.npz")])
    assert "no.npz" in capsys.readouterr().err
