"""The command at toy scale, on texts of the same forms."""

import gzip
import json
import random

import pytest

from tests.reproductions.scripts import script, tiny_bert

bert = script("bert")


def packed(path, lines):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Labels that a word gives away."""
    folder, chance = tmp_path_factory.mktemp("data"), random.Random(1)
    words = ["low", "new", "tower", "fox", "jump", "sleep"]

    def sentences(labels, count):
        return [f"{label} {words[int(label)]} {' '.join(chance.choices(words, k=4))}" for label in labels * count]

    packed(folder / "sentclf" / "TREC.train.all.gz", sentences("012", 20))
    packed(folder / "sentclf" / "TREC.test.all.gz", sentences("012", 2))
    for part in ("train", "dev", "test"):
        packed(folder / "sentclf" / f"stsa.binary.{part}.gz", sentences("01", 8))
    packed(folder / "multi30k" / "train.en.gz", [" ".join(chance.choices(words, k=5)) for _ in range(20)])
    (folder / "tinyshakespeare").mkdir()
    speeches = [f"FOX:\n{' '.join(chance.choices(words, k=6))}" for _ in range(130)]
    (folder / "tinyshakespeare" / "input.txt").write_text("\n\n".join(speeches))
    return folder


def test_all_parts_are_measured_once(data, tmp_path, capsys):
    output, model = tmp_path / "results", tiny_bert(tmp_path)
    arguments = ["--data", str(data), "--minilm", str(model), "--output", str(output), "--runs", str(tmp_path / "runs")]
    arguments += ["--steps", "2", "--seeds", "1"]
    assert bert.main(arguments) == 0
    found = json.loads((output / "results.json").read_text())
    assert found["trec"]["train"] == 54
    assert found["trec"]["tested"] == 6
    assert found["pretraining"]["start"]["pretrained"]["steps"] == 2
    for name in ("pretrained", "scratch"):
        assert found["pretraining"][name]["runs"][0]["train"] == 6
        assert len(found["pretraining"][name]["runs"]) == 2  # one for each learning rate
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + 4
    assert len({row.count("|") for row in rows}) == 1
    capsys.readouterr()
    assert bert.main(arguments) == 0  # everything is there already
    assert "Model:" not in capsys.readouterr().err


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    assert script("bert").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bert.main(["--data", str(tmp_path / "nowhere")])
    assert "nowhere" in capsys.readouterr().err
