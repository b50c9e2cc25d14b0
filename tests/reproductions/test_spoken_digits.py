"""The command at toy scale, on tones with the names of the recordings, and the committed figures."""

import csv
import json

import numpy as np
import pytest

from tests.data.sounds import digit_archive
from tests.reproductions.scripts import ROOT, script

digits = script("spoken-digits")


@pytest.fixture
def data(tmp_path):
    return digit_archive(tmp_path / "recordings.zip", recordings=7, seconds=0.1)


def test_a_model_is_trained_and_measured(data, tmp_path):
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    assert digits.main(["--data", str(data), *places, "--steps", "1"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert (found["trained"], found["tested"], found["steps"]) == (12, 30, 1)
    assert 0 <= found["exact_match"] <= 100
    assert found["cer"] >= 0
    rows = (tmp_path / "results" / "table.md").read_text().splitlines()
    assert len(rows) == 3
    assert len({row.count("|") for row in rows}) == 1


def test_the_first_five_recordings_are_for_the_test(data, tmp_path):
    files = digits.recordings(data, tmp_path)
    assert len(files) == 42
    tables = digits.write_tables(files, tmp_path)
    for split, numbers in (("train", {5, 6}), ("test", {0, 1, 2, 3, 4})):
        rows = list(csv.DictReader(tables[split].open()))
        assert {int(row["file"].removesuffix(".wav").rpartition("_")[2]) for row in rows} == numbers
        assert {row["text"] for row in rows} == {"zero", "one", "two"}
        assert all((tmp_path / row["file"]).is_file() for row in rows)
        assert all(row["text"] == digits.WORDS[int(row["file"].rpartition("/")[2][0])] for row in rows)
    assert np.unique([row["file"] for row in rows]).size == 30


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FSDD", raising=False)
    assert script("spoken-digits").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        digits.main(["--data", str(tmp_path / "no.zip")])
    assert "no.zip" in capsys.readouterr().err


def test_the_claim_holds_in_the_committed_figures():
    found = json.loads((ROOT / "spoken-digits" / "results" / "results.json").read_text())
    assert found["exact_match"] >= 95
    assert (found["trained"], found["tested"]) == (2700, 300)
