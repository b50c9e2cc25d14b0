"""No column is ignored, and no file is missed after an hour, without a word."""

import numpy as np
import pytest

from tests.first_day.conftest import PAIRS, write


@pytest.fixture
def links(work, call):
    ends = [(str(n), str((n * 3 + 1) % 23)) for n in range(23)]
    edges = np.array(ends, dtype=np.int64)
    np.savez(work / "graph.npz", x=np.eye(23, 5, dtype=np.float32), edges=edges)
    write(work / "links.csv", [("source", "target"), *ends], between=",")
    rows = [(a, b, str(n % 2)) for n, (a, b) in enumerate(ends)]
    write(work / "labels.csv", [("source", "target", "linked"), *rows], between=",")
    small = ["--model.num_heads", "1", "--model.head_dim", "3", "--trainer.max_steps", "2"]
    config = ["train", "graphs/link-prediction", "--task.inputs.pair.graph", "graph.npz", "--output", "run"]
    return lambda *more: call(*config, *small, *more)


def test_link_prediction_does_not_ignore_labels(links, call) -> None:
    said = "Columns that are not read: 'linked'. Every row counts as a link."
    code, _, err = links("--data.train", "labels.csv")
    assert code == 0, err
    assert f"WARNING: {said}" in err
    assert "leave out those that are not, or learn from both with the configuration graphs/link." in err
    code, _, err = call("evaluate", "run", "--data", "labels.csv")
    assert code == 0, err
    assert said in err
    assert "not read" not in call("evaluate", "run", "--data", "links.csv")[2]


def test_a_column_of_labels_that_is_named_is_refused(links) -> None:
    code, _, err = links("--data.train", "labels.csv", "--data.columns", "pair=source+target,label=linked")
    assert code == 2
    assert (
        "data.columns: link_prediction reads no 'label'. Choose from: evidence, fold, group, pair. Every row counts"
        in err
    )


def test_the_advice_does_not_give_one_column_to_a_pair(links, work) -> None:
    write(work / "nodes.csv", [("node", "label"), ("1", "a")], between=",")
    code, _, err = links("--data.train", "nodes.csv")
    assert code == 2
    assert "has no column 'source' or 'target'. Its header has: 'node', 'label'. If the file has no header" in err
    assert "pair=0+1" in err


def test_other_tasks_say_what_they_do_not_read(train, work) -> None:
    write(work / "wide.csv", [("id", "latin", "cyrillic"), *(("1", *pair) for pair in PAIRS)], between=",")
    err = train("--data.columns", "source=latin,target=cyrillic", data="wide.csv")[2]
    assert "\n  Columns that are not read: 'id'.\n" in err


def test_a_role_that_the_task_does_not_have(train) -> None:
    code, _, err = train("--data.columns", "source=0,target=1,targte=1")
    assert code == 2
    assert "data.columns: generation reads no 'targte'. Did you mean 'target'?" in err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--task.lexicon", "rivers.lxe", "--model.head", "lexicon"], "There is no file "),
        (["--task.lexicon", "bad.tsv", "--model.head", "lexicon"], "bad.tsv, line 1: a line of a lexicon is"),
        (["--task.source.vectors", "{class: file, path: glove.txt}"], "There is no file "),
    ],
)
def test_a_file_is_missed_before_any_work(options, problem, train, work) -> None:
    (work / "bad.tsv").write_text("one\n")
    code, _, err = train(*options)
    assert code == 2
    assert problem in err
    assert "Reading" not in err
    assert not (work / "run").exists()
