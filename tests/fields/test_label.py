"""Labels: one, several, or a grade."""

import json
from pathlib import Path

import pytest

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow, DataError
from saccade.fields import Label, Labels, fields

CELL = Cell("reviews.csv", 3, "label", Path())


def fitted(kind=Label, values=("pos", "neg", "pos"), **arguments):
    field = kind(**arguments)
    field.fit(values)
    return field


def test_reachable_by_short_name():
    assert (fields.get("label"), fields.get("labels")) == (Label, Labels)


@pytest.mark.parametrize(
    ("raw", "value"), [("pos", "pos"), (" pos\t", "pos"), (3, "3"), (3.0, "3"), (True, "true"), (False, "false")]
)
def test_a_label_is_its_name(raw, value):
    assert Label().read(raw, CELL) == value


@pytest.mark.parametrize(("raw", "message"), [("", "the label is empty"), (None, "empty"), (2.5, "not text but float")])
def test_cells_that_are_no_label(raw, message):
    with pytest.raises(BadRow, match=rf"reviews\.csv, line 3: .*{message}"):
        Label().read(raw, CELL)


def test_classes_are_those_of_the_data_in_a_fixed_order():
    field = fitted()
    assert field.names == ["neg", "pos"]
    assert [field.encode(name) for name in field.names] == [0, 1]
    assert field.sizes() == {"classes": 2}
    assert field.pad([1, 0, 1])["values"].tolist() == [1, 0, 1]
    assert field.learned() == "2 classes: neg (1), pos (2)"


def test_the_summary_is_one_line_however_long_labels_are():
    field = fitted(values=["first\nsecond", "x" * 50, *(f"{number:05}" for number in range(1669))])
    assert field.learned().startswith("1,671 classes: 00000 (1)")
    field = fitted(values=["first\nsecond", "x" * 50])
    assert field.learned() == f"2 classes: first second (1), {'x' * 37}... (1)"


def test_a_label_that_the_model_does_not_know_is_refused_with_the_nearest():
    with pytest.raises(BadRow, match=r"does not know the label 'poz'\..*Did you mean 'pos'"):
        fitted().read("poz", CELL)
    with pytest.raises(BadRow, match="does not know the label 'mixed'"):
        Label(names=["neg", "pos"]).read("mixed", CELL)
    with pytest.raises(BadRow, match="does not know the label 'true'"):
        fitted().read(True, CELL)
    with pytest.raises(DataError, match="no training example has the label 'mixed'"):
        fitted().encode("mixed")


def test_grades_are_sorted_as_numbers():
    assert fitted(values=["10", "9", "2", "10"], ordered=True).names == ["2", "9", "10"]
    assert fitted(values=["10", "9", "2"]).names == ["10", "2", "9"]
    assert fitted(values=["bad", "good"], names=["good", "fair", "bad"], ordered=True).names == ["good", "fair", "bad"]
    with pytest.raises(ValueError, match="sorted as numbers, but 'good' is not a number: give names"):
        fitted(values=["1", "good"], ordered=True)
    with pytest.raises(ValueError, match="but 'nan' is not a number"):
        fitted(values=["1", "nan", "2"], ordered=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Label(names=["a", "a"]), "names must differ"),
        (lambda: Label(names=["a"]), "at least two classes"),
        (lambda: fitted(values=["a", "a"]), "at least two different labels, got a"),
        (lambda: fitted(values=[]), "got none"),
        (lambda: Labels(separator=""), "separator must not be empty"),
    ],
)
def test_what_cannot_be_learned_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_suspicious_labels_get_a_warning():
    assert fitted().warnings(3) == []
    assert fitted(names=["neg", "pos", "mixed"]).warnings(3) == ["No training example has the label 'mixed'."]
    many = fitted(values=[str(n) for n in range(60)])
    assert many.warnings(60) == ["60 different labels in 60 examples: is that the right column?"]


@pytest.mark.parametrize("ordered", [False, True])
def test_what_was_learned_is_saved_and_loaded(ordered, tmp_path):
    field = fitted(values=["3", "1", "3"], ordered=ordered)
    field.save(tmp_path)
    other = Label(ordered=ordered)
    other.load(tmp_path)
    assert (other.names, other.counts) == (field.names, field.counts)
    with pytest.raises(BadRow):
        other.read("2", CELL)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 100_000,
        "[]",
        json.dumps({"names": ["a"], "counts": [1]}),
        json.dumps({"names": ["a", "a"], "counts": [1, 1]}),
        json.dumps({"names": ["a", 2], "counts": [1, 1]}),
        json.dumps({"names": ["a", "b"]}),
        json.dumps({"names": ["a", "b"], "counts": [1]}),
        json.dumps({"names": ["a", "b"], "counts": [1, True]}),
        json.dumps({"names": ["a", "b"], "counts": [1, -5]}),
        json.dumps({"names": "ab", "counts": [1, 1]}),
    ],
)
def test_a_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"labels\.json is damaged"):
        Label().load(tmp_path)


def test_several_labels_in_one_cell():
    field = Labels()
    assert field.read("politics, sport,politics", CELL) == ["politics", "sport"]
    assert field.read(["sport", " politics "], CELL) == ["politics", "sport"]
    assert field.read("", CELL) == field.read(None, CELL) == []
    assert Labels(separator="|").read("a,b|c", CELL) == ["a,b", "c"]
    field.fit([["sport"], [], ["art", "sport"]])
    assert field.names == ["art", "sport"]
    assert field.counts["sport"] == 2
    assert field.pad([field.encode(value) for value in (["sport"], [], ["art", "sport"])])["values"].tolist() == [
        [0.0, 1.0],
        [0.0, 0.0],
        [1.0, 1.0],
    ]
    assert field.show(["art", "sport"]) == "art, sport"
    assert field.size([0, 1]) == 1
    with pytest.raises(BadRow, match="does not know the label 'arts'"):
        field.read("sport,arts", CELL)


def test_splits_keep_labels_in_proportion():
    assert list(Label().strata("a")) == ["a"]
    assert list(Labels().strata(["a", "b"])) == ["a", "b"]


def test_labels_of_other_trainings_are_in_order():
    field = Label(ordered=True)
    field.fit(["1", "10", "2"])
    assert field.known_with(["3", "2"]) == ["1", "2", "3", "10"]
    assert Label(names=["b", "a"]).known_with(["c"]) == ["b", "a", "c"]


def test_the_number_of_examples_is_kept(tmp_path):
    field, again = Labels(), Labels()
    field.fit([["a"], [], ["a", "b"]])
    assert field.examples == 3
    field.save(tmp_path)
    again.load(tmp_path)
    assert (again.examples, again.counts) == (3, field.counts)
    path = tmp_path / "labels.json"
    path.write_text(path.read_text().replace('"examples": 3', '"examples": 1'))
    with pytest.raises(ArtifactError):
        again.load(tmp_path)


def test_a_separator_that_never_occurs_is_named():
    field = Labels()
    field.fit([["wood;kitchen"], ["wood"], ["metal;kitchen"], []])
    (warning,) = field.warnings(4)
    assert "the separator ',' never occurs" in warning
    assert "--task.label.separator ';'" in warning
    field = Labels(separator=";")
    field.fit([["wood", "kitchen"], ["wood"], ["metal"]])
    assert field.warnings(3) == []


def test_several_labels_in_one_cell_are_noticed():
    field = Label()
    field.fit(["bug", "billing", "login", "billing;bug", "bug;login"])
    (warning,) = field.warnings(5)
    assert "set --task.label labels --task.label.separator ';'" in warning
    field = Label()
    field.fit(["new york", "rome", "los angeles"])
    assert field.warnings(3) == []


def test_single_labels_need_no_separator():
    field = Labels()
    field.fit([["bug"], ["billing"]])
    (warning,) = field.warnings(2)
    assert warning.endswith("If each has just one, use --task.label label")


def test_another_separator_than_that_of_the_run():
    field = Labels(separator=";")
    field.fit([["bug", "billing"], ["login"]])
    with pytest.raises(DataError, match="This run separates labels with ';', not with ','"):
        field.read("bug,billing", CELL)
