"""The command at toy scale: real and simulated reviews."""

import csv
import json
import random

import pytest

from tests.reproductions.scripts import ROOT, script

recommenders = script("recommenders")


@pytest.fixture
def data(tmp_path):
    draws = random.Random(3)
    with open(tmp_path / recommenders.TABLE, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(recommenders.COLUMNS.values())
        for user in range(11):
            for turn, item in enumerate(draws.sample(range(7), 5)):
                rows.writerow(
                    [f"U{user}", f"B{item}", draws.randint(1, 5), "good sound" * (item % 3), 100 * turn + user]
                )
    return tmp_path


@pytest.mark.slow
def test_trains_and_measures_every_model(data, tmp_path, capsys) -> None:
    output = tmp_path / "results"
    command = ["--data", str(data), "--output", str(output), "--runs", str(tmp_path / "runs"), "--epochs", "1"]
    command += ["--ranked", "3", "--users", "17", "--simulated-epochs", "1"]
    assert recommenders.main(command) == 0
    found = json.loads((output / "results.json").read_text())
    for name in recommenders.ENTRIES:
        assert found[name]["mse"] > 0.0
        assert 0.0 <= found[name]["sampled_recall@10"] <= 100.0
    assert 0.0 <= found["simulated"]["pointer_accuracy"] <= 100.0
    assert found["simulated"]["chance"] == pytest.approx(100 * 2 / 17, abs=1.0)
    table = (output / "table.md").read_text()
    assert table.count("\n| ") == 2 * 2 + len(recommenders.ENTRIES) + 1
    capsys.readouterr()
    assert recommenders.main(command) == 0  # what is measured is not trained again
    assert "Training on" not in capsys.readouterr().err


def test_the_last_reviews_are_held_out(data) -> None:
    parts = recommenders.read(data)
    assert [len(parts[part]) for part in ("train", "valid", "test")] == [33, 11, 11]
    assert {float(row["time"]) // 100 for row in parts["test"]} == {4.0}
    assert {float(row["time"]) // 100 for row in parts["valid"]} == {3.0}


def test_a_rating_follows_from_an_earlier_review_of_the_aspect() -> None:
    rows = recommenders.simulated.simulate(5, seed=2)
    grades = {word: 1.0 + n for n, words in enumerate(recommenders.simulated.GRADES) for word in words}
    opinions = {}
    for row in sorted(rows, key=lambda row: row["time"]):
        (aspect,) = set(row["text"].split()) & set(recommenders.simulated.ASPECTS)
        (grade,) = {grades[word] for word in row["text"].split() if word in grades}
        assert opinions.setdefault((row["user"], aspect), row["rating"]) == row["rating"] == grade
    assert len({(row["user"], row["item"]) for row in rows}) == len(rows)


def test_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("AMAZON_REVIEWS", raising=False)
    output = tmp_path / "results"
    assert recommenders.main(["--users", "0", "--output", str(output)]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        recommenders.main(["--users", "0", "--data", str(tmp_path), "--output", str(output)])
    assert "There is no Musical_instruments_reviews.csv.zip" in capsys.readouterr().err


def test_pointers_find_the_review_in_the_committed_figures() -> None:
    committed = ROOT / "recommenders" / "results" / "results.json"
    if not committed.is_file():
        pytest.skip("reproductions/recommenders has not been measured yet")
    found = json.loads(committed.read_text())
    assert found["simulated"]["pointer_accuracy"] >= 90.0
