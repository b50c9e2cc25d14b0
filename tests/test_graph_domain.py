"""A made graph is learned from the command line: train, evaluate, predict, explain, resume and the model card."""

import io
import json
import random

import pytest

from saccade.cli import main

COUNT = 60


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Papers cite papers of their own topic; the words of most say nothing, so that neighbours must be read."""
    folder = tmp_path_factory.mktemp("graph")
    chance = random.Random(5)
    topic = {f"p{n}": ("physics", "law")[n % 2] for n in range(COUNT)}
    rows = []
    for number, (name, label) in enumerate(topic.items()):
        telling = 1 if number % 3 == 0 else 0
        rows.append(f"{name},{telling * (label == 'law')},{telling * (label == 'physics')},1\n")
    (folder / "nodes.csv").write_text("name,contract,atom,the\n" + "".join(rows))
    edges = []
    for name, label in topic.items():
        same = [other for other in topic if topic[other] == label and other != name]
        edges += [f"{name},{other}\n" for other in chance.sample(same, 3)]
    (folder / "edges.csv").write_text("from,to\n" + "".join(edges))
    names = chance.sample(list(topic), COUNT)
    for split, part in (("train", names[:30]), ("valid", names[30:40]), ("test", names[40:])):
        (folder / f"{split}.csv").write_text("node,label\n" + "".join(f"{n},{topic[n]}\n" for n in part))
    return folder


@pytest.fixture(scope="module")
def run(work):
    given = ["--task.inputs.node.graph", str(work / "edges.csv"), "--task.inputs.node.nodes", str(work / "nodes.csv")]
    given += ["--data.train", str(work / "train.csv"), "--data.valid", str(work / "valid.csv")]
    given += ["--output", str(work / "run"), "--trainer.max_steps", "60", "--trainer.learning_rate", "0.02"]
    assert main(["train", "graphs/gat", *given, "--model.dropout", "0.2", "--trainer.validate_every", "20"]) == 0
    return str(work / "run")


def call(capsys, *arguments):
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as leave:
        code = int(leave.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_evaluate(work, run, capsys):
    code, out, _ = call(capsys, "evaluate", run, "--data", str(work / "test.csv"))
    assert code == 0
    assert float(out.split("accuracy")[1].split()[0]) >= 90.0


def test_predict_from_standard_input_and_from_a_table(work, run, capsys, monkeypatch):
    rows = [line.split(",") for line in (work / "test.csv").read_text().splitlines()[1:]]
    text = "".join(f"{name}\n" for name, _ in rows)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
    code, out, _ = call(capsys, "predict", run)
    assert code == 0
    answers = out.split()
    assert sum(answer == label for answer, (_, label) in zip(answers, rows, strict=True)) >= 18
    code, out, _ = call(capsys, "predict", run, str(work / "test.csv"), "--columns", "node=node")
    assert (code, out.split()) == (0, answers)


def test_an_unknown_node_is_named(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"p1\np999\n"), encoding="utf-8"))
    code, _, err = call(capsys, "predict", run)
    assert code != 0
    assert "line 2: the graph has no node 'p999'" in err


def test_explain(work, run, capsys):
    code, out, _ = call(capsys, "explain", run, "--input", "p7")
    assert code == 0
    assert "layers.0.attention" in out
    assert "layers.1.attention" in out
    page = work / "page.html"
    assert call(capsys, "explain", run, "--input", "p7", "--output", str(page))[0] == 0
    assert "p7" in page.read_text()
    found = work / "page.json"
    assert call(capsys, "explain", run, "--input", "p7", "--output", str(found))[0] == 0
    assert "layers.1.attention" in json.dumps(json.loads(found.read_text()))


def test_resume_needs_no_graph_file(work, run, capsys):
    graph = work / "edges.csv"
    graph.rename(work / "moved.csv")
    try:
        code, _, err = call(capsys, "train", "--resume", run, "--trainer.max_steps", "64", "--trainer.patience", "50")
    finally:
        (work / "moved.csv").rename(graph)
    assert code == 0, err
    assert "Done after step 64" in err


def test_the_model_card_names_model_data_and_figures(work, run):
    card = (work / "run" / "README.md").read_text()
    assert "GAT (`gat`) for classification" in card
    assert "| training | `train.csv` | 30 |" in card
    assert "| macro_f1 |" in card


def test_a_bad_graph_stops_before_training(work, capsys, tmp_path):
    (tmp_path / "edges.csv").write_text("from,to\np1,p2\np1,p999\n")
    given = ["--task.inputs.node.graph", str(tmp_path / "edges.csv")]
    given += ["--task.inputs.node.nodes", str(work / "nodes.csv"), "--data.train", str(work / "train.csv")]
    code, _, err = call(capsys, "train", "graphs/gat", *given, "--output", str(tmp_path / "run"))
    assert code != 0
    assert "edges.csv, line 3: there is no node 'p999'." in err
    assert "--task.inputs.node.bad_edges skip" in err
    assert not (tmp_path / "run").exists()
