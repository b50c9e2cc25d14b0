"""The command at toy scale: an LSTM and an LSTMN of the same size."""

import gzip
import json

import pytest

from tests.reproductions.scripts import ROOT, script

lstmn = script("lstmn")


@pytest.fixture
def data(tmp_path):
    words = ["awful", "bad", "fair", "good", "superb"]
    for name, count in (("train", 6), ("dev", 2), ("test", 2)):
        lines = "".join(
            f"{grade} a {word} film , number {i}\n" for i in range(count) for grade, word in enumerate(words)
        )
        with gzip.open(tmp_path / f"stsa.fine.{name}.gz", "wt") as file:
            file.write(lines)
    return tmp_path


def test_both_have_the_same_size(data, tmp_path) -> None:
    output, runs = tmp_path / "results", tmp_path / "runs"
    command = ["--data", str(data), "--output", str(output), "--runs", str(runs), "--steps", "2", "--units", "11"]
    assert lstmn.main([*command, "--seeds", "1"]) == 0
    found = json.loads((output / "results.json").read_text())
    assert found["lstm"]["units"] > found["lstmn"]["units"] == 11
    assert found["lstm"]["parameters"] == pytest.approx(found["lstmn"]["parameters"], rel=0.05)
    assert found["majority"]["test"] == 20.0
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 3 + len(lstmn.ENCODERS)
    assert len({row.count("|") for row in rows}) == 1


def test_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("SENTCLF", raising=False)
    assert lstmn.main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        lstmn.main(["--data", str(tmp_path)])
    assert "There is no stsa.fine.train in" in capsys.readouterr().err


def test_both_learnt_in_the_committed_figures() -> None:
    committed = ROOT / "lstmn" / "results" / "results.json"
    if not committed.is_file():
        pytest.skip("reproductions/lstmn has not been measured yet")
    found = json.loads(committed.read_text())
    assert all(found[name]["test"] > found["majority"]["test"] + 5 for name in ("lstm", "lstmn"))
