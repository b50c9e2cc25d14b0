"""The command at toy scale, on tones with the names of the recordings, and the committed figures."""

import csv
import json
import zipfile

import pytest

from tests.data.sounds import pcm, tone
from tests.reproductions.scripts import ROOT, script

digits = script("spoken-digits")


@pytest.fixture
def data(tmp_path):
    """Two speakers, three digits, seven recordings of each."""
    path = tmp_path / "recordings.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for digit in range(3):
            for speaker, pitch in (("ann", 500.0), ("bob", 300.0)):
                for number in range(7):
                    sound = pcm(tone(pitch * (digit + 1), 0.1 + 0.01 * number))
                    archive.writestr(f"recordings/{digit}_{speaker}_{number}.wav", sound)
    return path


def test_a_model_is_trained_and_measured(data, tmp_path):
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    assert digits.main(["--data", str(data), *places, "--steps", "1", "--speaker", "bob"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    for name, counts in (("official", (12, 30)), ("new voice", (21, 21))):
        assert (found[name]["trained"], found[name]["tested"]) == counts
        assert found[name]["steps"] == 1
        assert 0 <= found[name]["exact_match"] <= 100
        assert found[name]["character_error_rate"] >= 0
    rows = (tmp_path / "results" / "table.md").read_text().splitlines()
    assert len(rows) == 4
    assert len({row.count("|") for row in rows}) == 1


def test_splits(data, tmp_path):
    files = digits.recordings(data, tmp_path)
    assert len(files) == 42
    official, new = digits.split_by_number(files), digits.split_by_speaker(files, "ann")
    numbers = [{int(file.stem.rpartition("_")[2]) for file in official[part]} for part in ("train", "test")]
    assert numbers == [{5, 6}, {0, 1, 2, 3, 4}]
    assert [{file.stem.split("_")[1] for file in new[part]} for part in ("train", "test")] == [{"bob"}, {"ann"}]
    for split in (official, new):
        assert sorted(split["train"] + split["test"]) == files


def test_tables_name_each_recording_and_its_word(data, tmp_path):
    split = digits.split_by_number(digits.recordings(data, tmp_path))
    tables = digits.write_tables(split, tmp_path / "inner" / "folder")
    for part, count in (("train", 12), ("test", 30)):
        rows = list(csv.DictReader(tables[part].open()))
        assert len({row["file"] for row in rows}) == len(rows) == count
        assert all((tables[part].parent / row["file"]).is_file() for row in rows)
        assert all(row["text"] == digits.WORDS[int(row["file"].rpartition("/")[2][0])] for row in rows)


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FSDD", raising=False)
    assert script("spoken-digits").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        digits.main(["--data", str(tmp_path / "no.zip")])
    assert "no.zip" in capsys.readouterr().err


def test_the_claim_holds_in_the_committed_figures():
    found = json.loads((ROOT / "spoken-digits" / "results" / "results.json").read_text())
    assert found["official"]["exact_match"] >= 95
    assert (found["official"]["trained"], found["official"]["tested"]) == (2700, 300)
    assert (found["new voice"]["trained"], found["new voice"]["tested"]) == (2500, 500)
