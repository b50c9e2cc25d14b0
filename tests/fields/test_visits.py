"""Records of visits: how they are written, what a model reads of them, and what is refused."""

import json
import math
from datetime import date

import pytest
import torch

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.corpus import Corpus
from saccade.data.errors import BadRow, DataError
from saccade.data.storage import store
from saccade.fields import Label, VisitLabel, VisitLabels, Visits

CELL = Cell("records.jsonl", 3, "record")
RECORD = {
    "visits": [
        {"time": "2024-05-01", "codes": ["I10", "E11", "I10"]},
        {"time": "2024-05-11T12:00", "codes": {"I10": None, "glucose": 7.5, "smoker": "yes", "pregnant": False}},
        {"time": "2024-06-01", "codes": []},
    ],
    "static": {"sex": "F", "age": 61, "unknown": None},
}


def fitted(**options) -> Visits:
    field = Visits(**options)
    other = {"visits": [["E11"], {"codes": {"glucose": "9.5"}}], "static": {"sex": "M", "age": 41}}
    field.fit([field.read(RECORD, CELL), field.read(other, CELL)])
    return field


def test_a_nested_record() -> None:
    value = Visits().read(RECORD, CELL)
    assert [visit["codes"] for visit in value["visits"]] == [["I10", "E11"], ["I10", "glucose", "smoker=yes"], []]
    assert value["visits"][1]["numbers"] == [None, 7.5, None]
    assert value["visits"][1]["time"] - value["visits"][0]["time"] == 10.5
    assert value["static"] == {"codes": ["sex=F", "age"], "numbers": [None, 61.0]}
    assert Visits().show(value) == "3 visits, 5 codes"


def test_all_ways_to_write_a_record_are_the_same() -> None:
    field = Visits()
    plain = field.read([["I10", 17], ["E11"]], CELL)
    assert plain == field.read('[["I10", "17"], ["E11"]]', CELL)
    assert plain == field.read({"visits": [{"codes": ["I10", "17"]}, {"codes": {"E11": True}}]}, CELL)
    rows = [("2024-05-11", "E11", ""), (date(2024, 5, 1), "I10", None), (None, "sex", "F"), ("2024-05-01", "17", "")]
    long = field.read(field.gather(rows, "p7", CELL), CELL)
    assert [visit["codes"] for visit in long["visits"]] == [["I10", "17"], ["E11"]]
    assert long["static"]["codes"] == ["sex=F"]
    assert field.show(long) == "p7: 2 visits, 3 codes"


def test_what_a_model_reads() -> None:
    field = fitted()
    assert field.sizes() == {"vocab": 1 + 4 + 1, "static": 1 + 3 + 1, "each_visit": False}
    value = field.read(RECORD, CELL)
    encoded = field.encode(value)
    names = field.book.names
    assert [names[i - 1] for i in encoded["codes"][0]] == ["I10", "E11"]
    number = encoded["codes"][1].index(len(names) + 1)
    assert encoded["amounts"][1][number] == pytest.approx((7.5 - 8.5) / 1.0)
    assert encoded["gaps"] == pytest.approx([0.0, math.log1p(10.5), math.log1p(20.5)])
    batch = field.pad([encoded, field.encode(field.read([["E11"]], CELL))])
    assert batch["values"].shape == (2, 3, 4)
    assert batch["mask"].tolist() == [[True] * 3, [True, False, False]]
    assert batch["amounts"][1, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert batch["static"].shape == (2, 3)
    assert (batch["static"][1] == 0).all()
    assert (batch["values"] == 0).equal(batch["amounts"] == 0)


def test_the_last_visits_are_read() -> None:
    field = fitted(max_visits=2)
    value = field.read(RECORD, CELL)
    encoded = field.encode(value)
    assert field.truncated(encoded) == "more than max_visits=2 visits"
    assert field.size(encoded) == 2
    batch = field.pad([encoded])
    assert batch["values"].shape[1] == 2
    assert batch["gaps"][0].tolist() == pytest.approx([math.log1p(10.5), math.log1p(20.5)])
    axis = field.axis(value)
    assert axis.names == ["2024-05-11T12:00", "2024-06-01"]
    assert axis.codes[0] == ["I10", "glucose 7.5", "smoker=yes"]
    assert len(field.places(value)[0]) == 2


def test_codes_of_few_records_and_unknown_codes() -> None:
    field = fitted(min_count=2)
    assert field.book.names == ["E11", "glucose"]
    assert field.unknown(field.read([["E11", "new"], ["new"]], CELL)) == ["new"]
    with pytest.raises(ValueError, match="no codes in 2 or more"):
        Visits(min_count=2).fit([field.read([["E11"]], CELL)])


def test_saved_and_stored(tmp_path) -> None:
    field, other = fitted(), Visits()
    field.save(tmp_path)
    other.load(tmp_path)
    value = field.read(RECORD, CELL)
    assert other.encode(value) == field.encode(value)
    rows = [{"record": field.encode(value)}, {"record": field.encode(field.read([[]], CELL))}]
    stored = store(rows, tmp_path / "rows.arrow")
    padded = field.pad([row["record"] for row in stored])
    for name, tensor in field.pad([row["record"] for row in rows]).items():
        torch.testing.assert_close(padded[name], tensor)
    exact = store([{"record": value}], tmp_path / "exact.arrow", exact=True)
    assert field.encode(exact[0]["record"]) == field.encode(value)


@pytest.mark.parametrize(
    "change",
    [
        {"visits": {"names": ["a", "a"], "scales": {}}},
        {"visits": {"names": ["a"], "scales": {"b": [0.0, 1.0]}}},
        {"visits": {"names": ["a"], "scales": {"a": [0.0, 0.0]}}},
        {"visits": {"names": ["a"], "scales": {"a": [0.0]}}},
        {"visits": {"names": [1], "scales": {}}},
    ],
)
def test_damaged_files_are_refused(tmp_path, change) -> None:
    whole = {"visits": {"names": [], "scales": {}}, "static": {"names": [], "scales": {}}}
    (tmp_path / "visits.json").write_text(json.dumps({**whole, **change}))
    with pytest.raises(ArtifactError):
        Visits().load(tmp_path)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("I10", "not valid JSON"),
        (7, "not a list of visits but 7"),
        ([], "has no visits"),
        ({"codes": []}, "has 'codes'"),
        ({"static": {}}, "has no visits"),
        (["I10"], "visit 1 of the record is not a list of codes"),
        ([{"date": 3}], "visit 1 of the record has 'date'"),
        ([{"time": "May", "codes": []}], "'May' is neither a number nor a date"),
        ([{"time": 3, "codes": []}, ["I10"]], "visit 2 of the record has no time"),
        ([{"time": 3}, {"time": 1}], r"visit 2 of the record \(1\) is before visit 1 \(3\)"),
        ([{"time": 3}, {"time": "2024-05-01"}], "mixes dates"),
        ([{"codes": {"glucose": float("inf")}}], "not a finite number"),
        ([[["I10"]]], "not a text but list"),
        ("[" * 90, "nested"),
        ({"rows": 5}, "takes two or three columns"),
        ({"rows": [[1, "I10"]], "name": {}}, "not text but dict"),
    ],
)
def test_bad_records_are_refused_with_their_place(raw, problem) -> None:
    with pytest.raises(BadRow, match=problem) as caught:
        Visits().read(raw, CELL)
    assert "records.jsonl, line 3" in str(caught.value)


def test_a_long_table(tmp_path) -> None:
    table = tmp_path / "long.csv"
    table.write_text(
        "patient,day,code,value,outcome,died\n"
        "p1,5,I10,,no,yes\np2,1,E11,,no,no\np1,,age,61,,yes\np1,2,glucose,7.5,yes,yes\np1,5,N17,,no,yes\n"
    )
    columns = {"record": ["day", "code", "value"], "label": ["day", "outcome"]}
    corpus = Corpus(columns=columns, group="patient")
    found = list(corpus.read(str(table), {"record": Visits(), "label": VisitLabel()}))
    assert [[visit["codes"] for visit in each["record"]["visits"]] for each in found] == [
        [["glucose"], ["I10", "N17"]],
        [["E11"]],
    ]
    assert [each["label"] for each in found] == [["yes", "no"], ["no"]]
    several = corpus.read(str(table), {"record": Visits(), "label": VisitLabels()})
    assert [each["label"] for each in several] == [[["yes"], ["no"]], [["no"]]]
    whole = Corpus(columns={**columns, "label": "died"}, group="patient")
    assert [each["label"] for each in whole.read(str(table), {"record": Visits(), "label": Label()})] == ["yes", "no"]
    with pytest.raises(DataError, match=r"--data\.group patient"):
        Corpus(columns=columns).read(str(table), {"record": Visits(), "label": VisitLabel()})
    with pytest.raises(BadRow, match="the rows of 'p1' have different values of the label"):
        list(
            Corpus(columns={**columns, "label": "code"}, group="patient").read(
                str(table), {"label": Label()} | {"record": Visits()}
            )
        )
    two = tmp_path / "two.csv"
    two.write_text("patient,day,code,outcome\np1,5,I10,no\np1,5,N17,yes\np2,5,N17,yes\n")
    read = {"record": Visits(), "label": VisitLabel()}
    bad = Corpus(columns={"record": ["day", "code"], "label": ["day", "outcome"]}, group="patient", bad_rows="skip")
    kept = bad.read(str(two), read)
    assert (len(list(kept)), kept.skipped.count) == (1, 1)
    assert "'p1' at 5 have 'no' and 'yes'" in str(kept.skipped.first[0])


def test_labels_of_visits() -> None:
    field = VisitLabel(positive="yes")
    values = [field.read(["no", None, "yes"], CELL), field.read('["no"]', CELL)]
    field.fit(values)
    padded = field.pad([field.encode(value) for value in values])
    assert padded["values"].tolist() == [[0, 0, 1], [0, 0, 0]]
    assert padded["mask"].tolist() == [[True, False, True], [True, False, False]]
    assert field.positive_class == 1
    several = VisitLabels()
    lists = [several.read([["a", "b"], None, []], CELL)]
    several.fit(lists)
    assert (several.examples, several.names) == (2, ["a", "b"])
    padded = several.pad([several.encode(value) for value in lists])
    assert padded["values"].tolist() == [[[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]]
    assert padded["mask"].tolist() == [[True, False, True]]
    for wrong in ("yes", [], 7):
        with pytest.raises(BadRow):
            field.read(wrong, CELL)


def test_a_positive_class_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="one of two classes"):
        Label(names=["a", "b", "c"], positive="a")
    with pytest.raises(ValueError, match="one of two labels, got a, b"):
        Label(positive="c").fit(["a", "b"])


def test_absurd_numbers_do_not_overflow() -> None:
    field = Visits()
    field.fit([field.read([{"codes": {"glucose": number}}], CELL) for number in (1.0, 1.0 + 1e-12)])
    padded = field.pad([field.encode(field.read([{"codes": {"glucose": 1e29}}], CELL))])
    assert padded["amounts"].tolist() == [[[1.0, 1e6]]]


def test_times_are_named_in_full() -> None:
    field = Visits()
    value = field.read([{"time": 19844.25, "codes": []}, {"time": 19844.26, "codes": []}, {"time": 19850.0}], CELL)
    assert field.axis(value).names == ["19844.25", "19844.26", "19850"]


def test_patients_of_both_parts_of_the_data_are_reported() -> None:
    field = Visits()
    one, two, nameless = (field.read({"name": name, "visits": [["I10"]]}, CELL) for name in ("a", "b", ""))
    field.fit([one, nameless])
    assert field.leaks([one, two, nameless]) == [
        "1 of 2 patients in the validation data are also in the training data."
    ]
    assert field.leaks([two, nameless]) == []
