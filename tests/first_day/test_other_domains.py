"""Mistakes of a newcomer outside translation: each answer names the value, the place and the fix."""

import json

import pytest

from tests.first_day.conftest import PAIRS, write

SMALL = ["--model.embedding_dim", "4", "--model.hidden_dim", "4", "--trainer.max_steps", "1"]


def test_a_first_row_that_may_be_a_header(work, call) -> None:
    (work / "clips.csv").write_text("clip,words\ngone.wav,low\n")
    code, _, err = call("train", "speech/rnnsearch", "--data.train", "clips.csv", "--output", "run")
    assert code == 2
    assert "clips.csv, line 1: the source 'clip' cannot be used: it does not exist." in err
    assert "If line 1 is a header, set --data.header yes." in err


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a b", "x"), ("c d", "y")], "Held out for validation: 1 of 2. Add data, or name a file (--data.valid)."),
        ([(latin, "ab"[len(latin) % 2]) for latin, _ in PAIRS] + [("bado", "nan")] * 2, "of the examples is 'nan'."),
    ],
)
def test_labels_of_few_examples_and_missing_ones(rows, said, work, call) -> None:
    write(work / "kinds.tsv", rows)
    err = call("train", "classification/pooling", "--data.train", "kinds.tsv", "--output", "run", *SMALL)[2]
    assert said in err


def test_sizes_that_do_not_fit_are_refused_before_the_data_is_read(work, call) -> None:
    code, _, err = call("train", "language/transformer", "--data.train", "rivers.tsv", "--model.dim", "12")
    assert code == 2
    assert "dim=12 gives each of num_heads=4 heads 3: set dim to a multiple of 8, or choose other positions." in err
    assert "Reading" not in err


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("I10 E11", "the record is not a list of visits but 'I10 E11', which is not valid JSON."),
        ([["I10", {"code": "E11"}]], "a code of the record is not a text but dict (of length 1)."),
    ],
)
def test_records_that_are_written_otherwise(record, said, work, call) -> None:
    (work / "records.jsonl").write_text(json.dumps({"record": record, "label": "yes"}) + "\n")
    code, _, err = call("train", "patients/retain", "--data.train", "records.jsonl", "--output", "run")
    assert code == 2
    assert f"records.jsonl, line 1: {said} Write a list of visits, such as [[" in err


def test_a_split_by_time_without_times(work, call) -> None:
    rows = [(f"u{n % 5}", f"i{n % 7}", str(n % 3), "good") for n in range(35)]
    write(work / "reviews.csv", [("user", "item", "rating", "text"), *rows], between=",")
    code, _, err = call("train", "recommendation/mpcn", "--data.train", "reviews.csv", "--output", "run")
    assert code == 2
    assert "35 of 35 examples have no time, but the split is by time. Name its column (--data.columns time=" in err
    assert "or split at random (--data.split random)." in err


def test_a_folder_of_pictures_is_no_text(work, call) -> None:
    for kind in ("dark", "light"):
        (work / "pictures" / kind).mkdir(parents=True)
        (work / "pictures" / kind / "1.png").touch()
    code, _, err = call("train", "classification/pooling", "--data.train", "pictures", "--output", "run")
    assert code == 2
    assert "pictures is a folder, but a text is not a file: name a table or a text file." in err
    assert "add --data.columns text=name." in err


def test_a_training_that_diverges(work, call) -> None:
    write(work / "kinds.tsv", [(latin, "ab"[len(latin) % 2]) for latin, _ in PAIRS])
    steps = ["--trainer.learning_rate", "1e9", "--trainer.max_steps", "7", "--trainer.clip_norm", "null"]
    config = ["train", "classification/pooling", "--data.train", "kinds.tsv", "--output", "run"]
    code, _, err = call(*config, *SMALL[:4], *steps)
    assert code == 2
    assert "try a lower learning_rate, a warmup or a smaller clip_norm." in err
