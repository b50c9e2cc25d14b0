"""The command at toy scale: four models of pairs."""

import json
import random

import pytest

from tests.reproductions.scripts import ROOT, script, tiny_bert

pairs = script("pairs")
HEADER = ["pair_ID", "sentence_A", "sentence_B", "entailment_label", "relatedness_score", "SemEval_set"]


@pytest.fixture
def data(tmp_path):
    """Whether the second sentence names the animal of the first."""
    draws = random.Random(3)
    rows = [HEADER]
    for part, count in (("TRAIN", 30), ("TRIAL", 7), ("TEST", 11)):
        for _ in range(count):
            animal = draws.choice(["cat", "dog", "hen"])
            same = draws.random() < 0.4
            label = "ENTAILMENT" if same else "NEUTRAL"
            rows.append(["1", f"A {animal} sleeps", f"It is {'a ' + animal if same else 'late'}", label, "3.5", part])
    (tmp_path / "SICK.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    return tmp_path


def test_trains_and_measures_every_model(data, tmp_path, capsys) -> None:
    output, runs = tmp_path / "results", tmp_path / "runs"
    command = ["--data", str(data), "--output", str(output), "--runs", str(runs), "--steps", "2", "--seeds", "1"]
    command += ["--minilm", str(tiny_bert(tmp_path))]
    assert pairs.main(command) == 0
    found = json.loads((output / "results.json").read_text())
    assert found["majority"]["label"] == "NEUTRAL"
    for name in pairs.ENTRIES:
        assert 0 <= found[name]["test"] <= 100
        assert found[name]["seeds"][0]["steps"] == 2
    assert found["deep"]["parameters"] != found["shallow"]["parameters"]
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 3 + len(pairs.ENTRIES)
    assert len({row.count("|") for row in rows}) == 1
    assert (output / "attention.png").stat().st_size > 1000
    capsys.readouterr()
    assert pairs.main(command) == 0  # what is measured is not trained again
    assert "Training" not in capsys.readouterr().err


def test_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("SICK", raising=False)
    assert pairs.main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        pairs.main(["--data", str(tmp_path)])
    assert exit.value.code == 2
    assert "There is no SICK.txt in" in capsys.readouterr().err


def test_all_beat_the_majority_in_the_committed_figures() -> None:
    committed = ROOT / "pairs" / "results" / "results.json"
    if not committed.is_file():
        pytest.skip("reproductions/pairs has not been measured yet")
    found = json.loads(committed.read_text())
    assert {"word_by_word", "shallow", "deep"} <= found.keys()
    assert all(found[name]["test"] > found["majority"]["test"] for name in pairs.ENTRIES if name in found)
