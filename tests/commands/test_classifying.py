"""A classifier on the command line: its columns by their roles, its tables and picture, and cross-validation."""

import csv
import json

import pytest

from tests.tasks.test_classification import films

SMALL = [
    "classification/pooling",
    "--task.inputs.text.tokeniser={class: word}",
    "--model={embedding_dim: 7, hidden_dim: 5, encoder: embedding}",
    "--trainer={max_epochs: 3, batch_tokens: 300, learning_rate: 0.03}",
]
ROLES = ["--data.text", "body", "--data.label=stars"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name, seed in (("train", 1), ("test", 2)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = [{"stars": label, "part": n % 2, "body": text} for n, (text, label) in enumerate(films(120, seed))]
            writer = csv.DictWriter(file, ["stars", "part", "body"])
            writer.writeheader()
            writer.writerows(rows)
    return folder


@pytest.fixture
def trained(tables, call):
    folder = tables / "run"
    if not folder.exists():
        code, _, err = call("train", *SMALL, *ROLES, "--data.train", str(tables / "train.csv"), "--output", str(folder))
        assert code == 0, err
    return str(folder)


def test_an_evaluation_prints_the_confusion_matrix_and_draws_the_reliability(trained, tables, call):
    pytest.importorskip("matplotlib")
    test, picture = str(tables / "test.csv"), tables / "reliability.png"
    code, out, err = call("evaluate", trained, "--data", test, "--plot", str(picture))
    assert code == 0, err
    assert "confusion matrix" in out
    assert "precision  recall" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(call("evaluate", trained, "--data", test, *ROLES, "--json")[1])
    matrix = found["tables"]["confusion"]
    assert matrix["columns"] == ["bad", "good"]
    assert sum(map(sum, matrix["rows"].values())) == found["examples"] == 120
    right = sum(matrix["rows"][name][place] for place, name in enumerate(matrix["columns"]))
    assert found["figures"]["accuracy"] == pytest.approx(100 * right / 120)
    assert sum(row[0] for row in found["tables"]["reliability"]["rows"].values()) == 120


def test_roles_of_new_files(trained, tables, call):
    text = (tables / "test.csv").read_text()
    (tables / "other.csv").write_text(text.replace("body", "review", 1))
    code, out, _ = call("predict", trained, str(tables / "other.csv"), "--data.text", "review", "--format", "jsonl")
    assert (code, len(out.splitlines())) == (0, 120)
    assert call("evaluate", trained, "--data", str(tables / "other.csv"), "--data.text=2", "--header", "yes")[0] == 0
    code, _, err = call("evaluate", trained, "--data", str(tables / "other.csv"), "--data.text", "revew")
    assert code == 2
    assert "Did you mean 'review'" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--data.text", "body", "--data.lable", "stars"], "data has no argument 'lable'"),
        (["--data.text", "body", "--data.lable", "stars"], "Did you mean 'label'?"),
        (["--data.text", "bdy", "--data.label", "stars"], "Did you mean 'body'?"),
        (["--data.text", "body"], "does not say which column is the label"),
        (["--data.trian", "x.csv"], "Did you mean 'train'?"),
        (["--data.folds", "1"], "2 or more, or the name of a column; got 1"),
        (["--data.folds", "3", "--data.fold", "3"], "data: fold is from 0 to 2 with 3 folds, got '3'"),
        (["--data.fold", "3"], "data: fold needs folds"),
    ],
)
def test_wrong_columns_and_folds_are_named(flags, message, tables, call):
    code, out, err = call("validate", *SMALL, "--data.train", str(tables / "train.csv"), *flags)
    assert (code, out) == (2, "")
    assert message in err


def test_cross_validation(tables, call, tmp_path):
    command = ["train", *SMALL, *ROLES, "--data.train", str(tables / "train.csv"), "--output", str(tmp_path / "cv")]
    code, out, err = call(*command, "--folds", "part")
    assert code == 0, err
    assert "over 2 folds; pooled: over all 120 examples together" in out
    assert "confusion matrix" in out
    assert {path.name for path in (tmp_path / "cv").iterdir()} >= {"fold-0", "fold-1", "README.md"}
    assert call("evaluate", str(tmp_path / "cv" / "fold-1"), "--data", str(tables / "test.csv"))[0] == 0
    code, out, err = call("train", *SMALL, "--resume", "x", "--folds", "3")
    assert code == 2
    assert "to continue, run the same command again" in err


def test_several_labels_are_listed_whole(tables, call):
    rows = [("oak pan", "kitchen;wood"), ("steel pan", "kitchen;metal"), ("oak toy", "toys;wood")] * 10
    (tables / "several.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    data = ["--data.train", str(tables / "several.tsv"), "--data.valid", str(tables / "several.tsv")]
    folder = str(tables / "several")
    label = ["--task.label={class: labels, separator: ;}"]
    code, _, err = call("train", *SMALL, *label, *data, "--output", folder)
    assert code == 0, err
    code, out, err = call("predict", folder, "--input", "oak pan", "--top", "2")
    assert code == 0, err
    assert {line.split("\t")[1] for line in out.splitlines()} <= {"kitchen", "wood", "metal", "toys"}
    assert len(out.splitlines()) == 2
    said = "answers have no label, since none is likely enough: see threshold."
    code, out, err = call("predict", folder, "--input", "oak pan", "--threshold", "0.9999")
    assert (code, out) == (0, "\n")
    assert f"1 of 1 {said}" in err
    unsure = call("evaluate", folder, "--data", str(tables / "several.tsv"), "--threshold", "0.9999")
    assert f"30 of 30 {said}" in unsure[1] + unsure[2]
    assert said not in call("predict", folder, "--input", "oak pan", "--threshold", "0.0001")[2]


def test_an_empty_input_gets_an_empty_answer_in_its_line(trained, tables, call):
    texts = ["a fine film", "", " ", "a poor film"]
    code, lines, err = call("predict", trained, given="\n".join(texts) + "\n")
    assert code == 0, err
    assert [bool(line) for line in lines.split("\n")] == [True, False, False, True, False]
    assert "2 inputs are empty, so their answers are empty too: 2, 3" in err
    (tables / "inputs.txt").write_text("\n".join(texts) + "\n")
    (tables / "inputs.csv").write_text("body,part\n" + "".join(f"{text},1\n" for text in texts))
    (tables / "inputs.jsonl").write_text("".join(json.dumps({"body": text or None}) + "\n" for text in texts))
    for name in ("inputs.txt", "inputs.csv", "inputs.jsonl"):
        columns = [] if name == "inputs.txt" else ["--columns", "text=body"]
        code, same, err = call("predict", trained, str(tables / name), *columns)
        assert (code, same) == (0, lines), err
    listed = call("predict", trained, "--input", "a film", "--input", "", "--top", "2", "--scores")[1].splitlines()
    assert [line.split("\t")[0] for line in listed] == ["1", "1", "2"]
    found = json.loads(call("predict", trained, "--input", "", "--format", "jsonl")[1])
    assert (found["answer"], found["score"], found["probabilities"]) == (None, 0.0, {})
    code, _, err = call("explain", trained, "--input", "")
    assert (code, "The text of input 1 is empty: there is nothing to look at." in err) == (2, True), err


def test_empty_cells_of_large_tables(trained, tables, call):
    (tables / "large.csv").write_text("body,part\na film,1\n,2\n")
    code, _, err = call("predict", trained, "--data", str(tables / "large.csv"), "--output", str(tables / "answers"))
    assert code == 0, err
    (part,) = (tables / "answers").glob("*.csv")
    first, second = csv.DictReader(part.open())
    assert (first["answer"] in ("good", "bad"), second["answer"], second["part"]) == (True, "", "2")


def test_nothing_is_printed_if_the_inputs_are_wrong(trained, tables, call):
    test, output = str(tables / "test.csv"), tables / "kept.csv"
    output.write_text("old")
    code, out, err = call("predict", trained, test, "--columns", "text=bod", "--format", "csv")
    assert (code, out) == (2, "")
    assert "Did you mean 'body'?" in err
    assert call("predict", trained, test, "--columns", "text=bod", "--output", str(output))[0] == 2
    assert output.read_text() == "old"


def test_options_are_named_as_the_command_has_them(trained, tables, call):
    code, _, err = call("evaluate", trained, str(tables / "test.csv"))
    assert code == 2
    assert "--data is missing. Did you mean --data " in err
    code, _, err = call("predict", trained, "--input", "good", "--beam", "5")
    assert code == 2
    assert err.startswith("usage: saccade predict")
    assert "predict has no option --beam. It is an option of generation" in err
    assert "the task of this run is classification." in err
    code, _, err = call("explain", trained, "--input", "good film", "--target", "godo")
    assert code == 2
    assert "The target of input 1 (--target): the model does not know the label 'godo'. Did you mean 'good'?" in err
    assert "bad-rows" not in err
    assert "in memory" not in err


def test_other_names_of_columns(trained, tables, call):
    other = tables / "other.csv"
    other.write_text("nr,message,kind\n1,a good film,good\n2,a bad film,bad\n")
    code, _, err = call("evaluate", trained, "--data", str(other))
    assert code == 2
    assert "Name the columns, as --columns text=message,label=kind." in err
    headless = tables / "headless.csv"
    headless.write_text("a good film,good\nalone\na bad film,bad\n")
    options = ("--columns", "text=0", "--header", "no", "--bad-rows", "skip")
    code, out, err = call("explain", trained, str(headless), *options, "--format", "json")
    assert code == 0, err
    assert "Skipped 1 bad row" in err
    assert len(json.loads(out)["items"]) == 2


def test_warnings_name_the_options_of_the_command(run, tables, call):
    code, _, err = call("predict", run, str(tables / "test.csv"), "--output", str(tables / "answers.txt"))
    assert code == 0, err
    assert "Name the columns, as --columns source=body; if it is an example, set --header no." in err
    (tables / "three.tsv").write_text("ba\tab\t1\nsu\tus\t2\n")
    code, _, err = call("predict", run, str(tables / "three.tsv"))
    assert "has 3 columns; the first is read as source" in err
    assert "as --columns source=COLUMN" in err
