"""Whole graphs and links are learned from the command line: train, evaluate, predict and explain."""

import io
import json
import random

import pytest

from saccade.cli import main


def call(capsys, *arguments):
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as leave:
        code = int(leave.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def molecule(chance):
    """A ring or a chain with one strange atom: only the neighbourhoods tell them apart."""
    count = chance.randrange(4, 9)
    ring = chance.random() < 0.5
    edges = [[n, n + 1] for n in range(count - 1)] + [[count - 1, 0]] * ring
    order = chance.sample(range(count), count)
    tags = ["C"] * count
    tags[chance.randrange(count)] = "N"
    graph = {"edges": [[order[a], order[b]] for a, b in edges], "tags": tags, "edge_tags": ["bond"] * len(edges)}
    return {"graph": graph, "label": "ring" if ring else "chain"}


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    folder, chance = tmp_path_factory.mktemp("molecules"), random.Random(3)
    for name, count in (("train", 80), ("test", 20)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(molecule(chance)) + "\n" for _ in range(count)))
    given = ["--data.train", str(folder / "train.jsonl"), "--data.valid", str(folder / "test.jsonl")]
    given += ["--output", str(folder / "run"), "--trainer.max_steps", "120", "--trainer.learning_rate", "0.01"]
    sizes = ["--model.num_layers", "2", "--model.num_heads", "2", "--model.dropout", "0"]
    sizes += ["--trainer.validate_every", "60"]
    assert main(["train", "graphs/graph", *given, *sizes]) == 0
    return folder


def test_whole_graphs(molecules, capsys):
    run, data = str(molecules / "run"), str(molecules / "test.jsonl")
    code, out, _ = call(capsys, "evaluate", run, "--data", data)
    assert code == 0
    assert float(out.split("accuracy")[1].split()[0]) >= 90.0
    code, out, _ = call(capsys, "predict", run, data, "--columns", "graph=graph")
    labels = [json.loads(line)["label"] for line in (molecules / "test.jsonl").read_text().splitlines()]
    assert code == 0
    assert sum(one == other for one, other in zip(out.split(), labels, strict=True)) >= 18
    page = molecules / "page.html"
    one = json.loads((molecules / "test.jsonl").read_text().splitlines()[0])["graph"]
    code, _, err = call(capsys, "explain", run, "--input", json.dumps(one), "--output", str(page))
    assert code == 0, err
    assert "pooled.pooling" in page.read_text()
    card = (molecules / "run" / "README.md").read_text()
    assert "GraphGAT" in card


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Two groups; people know only people of their own group."""
    folder, chance = tmp_path_factory.mktemp("people"), random.Random(4)
    names = [f"p{n}" for n in range(40)]
    rows = "".join(f"{name},{n % 2},{(n + 1) % 2},1\n" for n, name in enumerate(names))
    (folder / "nodes.csv").write_text("name,a,b,c\n" + rows)
    pairs = [chance.sample(range(40), 2) for _ in range(260)]
    known = [(a, b) for a, b in pairs if a % 2 == b % 2]
    (folder / "edges.csv").write_text("from,to\n" + "".join(f"p{a},p{b}\n" for a, b in known[:90]))
    for split, part in (("train", pairs[:200]), ("test", pairs[200:])):
        lines = "".join(f"p{a},p{b},{'yes' if a % 2 == b % 2 else 'no'}\n" for a, b in part)
        (folder / f"{split}.csv").write_text("source,target,label\n" + lines)
    field = "--task.inputs.pair"
    given = [f"{field}.graph", str(folder / "edges.csv"), f"{field}.nodes", str(folder / "nodes.csv")]
    given += ["--data.train", str(folder / "train.csv"), "--data.valid", str(folder / "test.csv")]
    given += ["--output", str(folder / "run"), "--trainer.max_steps", "60", "--trainer.validate_every", "30"]
    assert main(["train", "graphs/link", *given, "--trainer.learning_rate", "0.02"]) == 0
    return folder


def test_links(people, capsys, monkeypatch):
    run = str(people / "run")
    code, out, _ = call(capsys, "evaluate", run, "--data", str(people / "test.csv"))
    assert code == 0
    assert float(out.split("accuracy")[1].split()[0]) >= 90.0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"p1 p7\np1 p8\n"), encoding="utf-8"))
    code, out, _ = call(capsys, "predict", run)
    assert (code, out.split()) == (0, ["yes", "no"])
    code, out, err = call(capsys, "explain", run, "--input", "p1 p7")
    assert code == 0, err
    assert "layers.1.attention of p7" in out


def test_links_alone(people, capsys, monkeypatch):
    """The graph and the data name links; pairs without one are drawn, and held-out links are not read."""
    lines = (people / "edges.csv").read_text().splitlines()[1:]
    edges = sorted({tuple(sorted(line.split(","))) for line in lines})
    random.Random(6).shuffle(edges)
    for name, part in (("links", edges[:60]), ("later", edges[60:])):
        (people / f"{name}.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in part))
    field = "--task.inputs.pair"
    given = [f"{field}.graph", str(people / "edges.csv"), f"{field}.nodes", str(people / "nodes.csv")]
    given += ["--data.train", str(people / "links.csv"), "--output", str(people / "links")]
    given += ["--trainer.max_steps", "80", "--trainer.validate_every", "40", "--trainer.learning_rate", "0.02"]
    code, out, err = call(capsys, "train", "graphs/link-prediction", *given)
    assert code == 0, err
    assert "other edges are not read" in out + err
    assert "validation pairs are" not in out + err
    run = str(people / "links")
    code, out, err = call(capsys, "evaluate", run, "--data", str(people / "later.csv"))
    assert code == 0, err
    assert float(out.split("auroc")[1].split()[0]) >= 60.0  # at most 75: half of the pairs drawn are of one group, too
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"p1 p7\np1 p8\n"), encoding="utf-8"))
    code, out, _ = call(capsys, "predict", run)
    assert (code, out.split()) == (0, ["yes", "no"])
