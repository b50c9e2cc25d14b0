"""The made-up reviews, and the command at toy scale."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from tests.reproductions.scripts import ROOT, script, tiny_bert

sys.path.append(str(ROOT / "rationales"))
rationales = script("rationales")
import aspects  # noqa: E402 (its folder is on the path only now)
import movies  # noqa: E402


def test_three_neighbouring_words_decide_about_each_aspect() -> None:
    for review in aspects.reviews(60, seed=5):
        words = review["text"].split()
        assert aspects.SHORTEST <= len(words) <= aspects.LONGEST
        taken = set()
        for aspect in aspects.ASPECTS:
            start, end = review["spans"][aspect]
            votes = [word.startswith("good") for word in words[start:end]]
            assert all(word.startswith(("good", "bad")) for word in words[start:end])
            assert words[start - 1].startswith(aspect)
            assert review["labels"][aspect] == ("good" if sum(votes) >= 2 else "bad")
            taken |= set(range(start - 1, end))
        assert all(word.startswith("filler") for place, word in enumerate(words) if place not in taken)
    assert aspects.reviews(3, seed=5) == aspects.reviews(60, seed=5)[:3]


@pytest.fixture
def archive(tmp_path):
    """Reviews in ERASER's form; the sentence that decides is marked."""
    path = tmp_path / "movies.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for split, count in (("train", 12), ("val", 4), ("test", 5)):
            rows = []
            for number in range(count):
                good = number % 2 == 0
                name = f"{split}{number}.txt"
                packed.writestr(f"movies/docs/{name}", f"a film .\nit is {'good' if good else 'bad'} .\nthe end .")
                evidence = {"docid": name, "start_token": 3, "end_token": 6}
                row = {"annotation_id": name, "classification": "POS" if good else "NEG", "evidences": [[evidence]]}
                rows.append(json.dumps(row))
            packed.writestr(f"movies/{split}.jsonl", "\n".join(rows))
    return path


def test_splits_hold_texts_labels_and_spans_of_words(archive, tmp_path) -> None:
    files = movies.write_splits(archive, tmp_path / "splits")
    rows = [json.loads(line) for line in Path(files["test"]).read_text().splitlines()]
    assert len(rows) == 5
    assert rows[1] == {"text": "a film .\nit is bad .\nthe end .", "label": "NEG", "evidence": [[3, 6]]}
    assert rows[1]["text"].split()[3:6] == ["it", "is", "bad"]


def test_every_part_at_toy_scale(archive, tmp_path) -> None:
    output, runs = tmp_path / "results", tmp_path / "runs"
    arguments = ["--output", str(output), "--runs", str(runs), "--data", str(archive), "--steps", "1"]
    arguments += ["--reviews", "40", "--minilm", str(tiny_bert(tmp_path))]
    arguments += ["--models", *rationales.OF_ASPECTS]
    models = ["attention", "picks 20% of the words", "HAN", "MiniLM, attention"]
    assert rationales.main([*arguments, *models]) == 0
    found = json.loads((output / "results.json").read_text())
    assert set(found["aspects"]["models"]) == set(rationales.OF_ASPECTS)
    for name, of_model in found["aspects"]["models"].items():
        for of_aspect in of_model.values():
            assert ("precision" in of_aspect["test"]) == name.startswith("picks")
            assert len(of_aspect["test"]["curve"]) == aspects.SHORTEST // 2
    assert found["aspects"]["true_share"] == pytest.approx(10, abs=1.5)
    assert {"random", "gradient", "test", "valid"} <= set(found["movies"]["attention"])
    for name in models:
        assert {"token_f1", "iou_f1", "auprc", "accuracy"} <= set(found["movies"][name]["test"])
    assert "kept" in found["movies"]["picks 20% of the words"]["test"]
    table = (output / "table.md").read_text()
    assert "| random |" in table
    assert "0.285 token F1" in table
    for name in ("aspects.png", "movies.png"):
        assert (output / name).stat().st_size > 1000
    before = (runs / "movies" / "attention" / "measured.json").stat().st_mtime_ns
    assert rationales.main([*arguments, "attention", "--parts", "movies"]) == 0  # nothing is trained again
    assert (runs / "movies" / "attention" / "measured.json").stat().st_mtime_ns == before


def test_without_data_the_made_up_reviews_remain(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("ERASER_MOVIES", raising=False)
    assert rationales.main(["--parts", "movies", "--output", str(tmp_path)]) == 0
    assert "eraser-movies.zip" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        rationales.main(["--data", str(tmp_path / "none.zip")])


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "rationales" / "results" / "results.json").read_text())
    of_models = found["aspects"]["models"]
    chosen = aspects.mean_over_aspects(of_models[aspects.at_true_share(found["aspects"])])
    assert chosen["precision"] >= 90.0
    assert all(
        chosen["precision"] > aspects.mean_over_aspects(of_model)["top"]
        for name, of_model in of_models.items()
        if name.startswith("attention")
    )
    film = found["movies"]
    best = film[movies.chosen_on_validation(film)]["test"]
    assert best["accuracy"] >= 80.0
    assert best["token_f1"] > 0.285  # DeYoung et al. (2020)
    assert best["auprc"] > film["attention"]["random"]["auprc"]
