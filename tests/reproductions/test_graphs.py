"""The command at toy scale, on graphs that have the form of the real ones."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from reproductions.graphs import dictionary, links, molecules, nodes
from tests.reproductions.scripts import script

graphs = script("graphs")


@pytest.fixture
def data(tmp_path):
    """Two groups of nodes with edges inside each, and one telling feature; and twenty small graphs in ten folds."""
    chance = np.random.default_rng(1)
    labels = np.arange(40) % 2
    edges = np.array([(a, b) for a, b in chance.integers(0, 40, size=(300, 2)) if labels[a] == labels[b]])
    x = np.stack([labels, 1 - labels, np.ones(40)], axis=1).astype(np.float32)
    rows, columns = x.nonzero()
    sparse = {"x_indices": columns, "x_data": x[rows, columns], "x_shape": np.array(x.shape)}
    order = chance.permutation(40)
    splits = {"train": order[:10], "valid": order[10:20], "test": order[20:]}
    starts = np.searchsorted(rows, np.arange(41))
    (tmp_path / "planetoid").mkdir()
    np.savez(tmp_path / "planetoid" / "cora.npz", edges=edges, labels=labels, x_indptr=starts, **sparse, **splits)
    (tmp_path / "tu-graphs").mkdir()
    lines = ["20"]
    for number in range(20):  # triangles and paths of three nodes, all different
        ring, tag = number % 2, number // 2
        lines += [f"3 {ring}", f"{tag} 2 1 2" if ring else f"{tag} 1 1", "1 2 0 2", "0 2 0 1" if ring else "0 1 1"]
    with tarfile.open(tmp_path / "tu-graphs" / "MUTAG.tar.gz", "w:gz") as archive:
        files = {"MUTAG.txt": "\n".join(lines)}
        files |= {f"10fold_idx/test_idx-{n}.txt": f"{2 * n - 2}\n{2 * n - 1}\n" for n in range(1, 11)}
        for name, text in files.items():
            member = tarfile.TarInfo(f"MUTAG/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return tmp_path


def test_models_are_trained_and_measured(data, tmp_path, capsys):
    output = tmp_path / "results"
    arguments = ["--data", str(data), "--output", str(output), "--runs", str(tmp_path / "runs"), "--steps", "2"]
    arguments += ["--seeds", "1", "2", "--folds", "3", "--keys", "3", "--graphs", "20", "--epochs", "1"]
    assert graphs.main(arguments) == 0
    assert "Skipped pubmed" in capsys.readouterr().err
    found = json.loads((output / "results.json").read_text())
    for score in ("gat", "gatv2"):
        seeds = found[f"cora {score}"]
        assert [each["seed"] for each in seeds] == [1, 2]
        assert all(each["steps"] == 2 and 0 <= each["accuracy"] <= 100 for each in seeds)
        assert found[f"dictionary {score}"]["epochs"] == 1
    assert [each["fold"] for each in found["MUTAG"]] == [3]
    assert [each["seed"] for each in found["links"]] == [1, 2]
    assert all(0 <= each["accuracy"] <= 100 for each in found["links"])
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + 6
    assert len({row.count("|") for row in rows}) == 1
    kept = tmp_path / "runs" / "cora-gat-1.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "accuracy": 12.0}))
    (tmp_path / "runs" / "cora-gatv2-2.json").unlink()
    assert graphs.main([*arguments, "--table"]) == 0
    found = json.loads((output / "results.json").read_text())
    assert found["cora gat"][0]["accuracy"] == 12.0
    assert [each["seed"] for each in found["cora gatv2"]] == [1]


def test_links_are_split_without_overlap(data):
    parts = links.split(data / "planetoid" / "cora.npz", 1)
    pairs = [tuple(sorted(each["pair"].split())) for several in parts.values() for each in several]
    with np.load(data / "planetoid" / "cora.npz") as archive:
        known = {tuple(sorted(map(str, edge))) for edge in archive["edges"].tolist() if edge[0] != edge[1]}
    assert sorted(pairs) == sorted(known)
    assert len(parts["test"]) == round(0.1 * len(known))


def test_the_splits_are_written_with_their_labels(data, tmp_path):
    files = nodes.write_splits(data / "planetoid" / "cora.npz", tmp_path / "splits")
    lines = Path(files["test"]).read_text().splitlines()
    assert lines[0] == "node,label"
    assert len(lines) == 21
    assert all(int(line.split(",")[0]) % 2 == int(line.split(",")[1]) for line in lines[1:])


def test_graphs_and_folds(data):
    found, folds = molecules.read(data / "tu-graphs" / "MUTAG.tar.gz")
    assert found[0] == {"graph": {"edges": [[0, 1], [1, 2]], "tags": ["0", "1", "0"]}, "label": "0"}
    assert found[1]["graph"]["edges"] == [[0, 1], [0, 2], [1, 2]]
    assert folds[9] == [18, 19]


def test_queries_see_the_keys_of_their_own_graph():
    near = dictionary.bipartite(2, 3)
    lists = [part.tolist() for part in near.neighbours.split(near.starts.diff().tolist())]
    assert lists == [[3, 4, 5]] * 3 + [[]] * 3 + [[9, 10, 11]] * 3 + [[]] * 3
    values = torch.stack([torch.randperm(3) for _ in range(5)])
    assert dictionary.Lookup(3, score="gat")(values).shape == (5, 3, 3)


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert script("graphs").main(["--parts", "cora", "MUTAG"]) == 0
    assert "Set --data or SACCADE_DATA" in capsys.readouterr().err
