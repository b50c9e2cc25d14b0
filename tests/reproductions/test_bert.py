"""The command at toy scale, on texts of the same forms."""

import gzip
import io
import json
import random
import tarfile

import pytest
import torch

from saccade import huggingface
from saccade.data.tokenisers.wordpiece import WordPiece
from saccade.models import Bert
from tests.reproductions.scripts import script

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
    (folder / "review_polarity").mkdir()
    with tarfile.open(folder / "review_polarity" / "review_polarity.tar.gz", "w:gz") as archive:
        for label in ("neg", "pos"):
            for number in range(0, 1000, 50):
                content = f"a {label} film .\n{' '.join(chance.choices(words, k=5))}\n".encode()
                member = tarfile.TarInfo(f"txt_sentoken/{label}/cv{number:03d}_{number}.txt")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(1)
    tokeniser = WordPiece(vocab_size=80).fit(["low new tower fox jump sleep a film pos neg"])
    sizes = {"dim": 14, "num_heads": 2, "num_layers": 1, "feed_forward_dim": 19, "max_length": 256}
    path = tmp_path_factory.mktemp("model") / "bert"
    return huggingface.save(path, Bert(vocab=tokeniser.size, head="none", **sizes), tokeniser)


def test_all_parts_are_measured_once(data, model, tmp_path, capsys):
    output = tmp_path / "results"
    arguments = ["--data", str(data), "--model", str(model), "--output", str(output), "--runs", str(tmp_path / "runs")]
    arguments += ["--steps", "2", "--seeds", "1", "--folds", "0", "3"]
    assert bert.main(arguments) == 0
    found = json.loads((output / "results.json").read_text())
    assert found["trec"]["train"] == 54
    assert found["trec"]["tested"] == 6
    assert set(found["reviews"]["folds"]) == {"0", "3"}
    assert found["reviews"]["folds"]["3"]["train"] == 32
    assert found["reviews"]["folds"]["3"]["tested"] == 4
    assert found["pretraining"]["start"]["pretrained"]["steps"] == 2
    for name in ("pretrained", "scratch"):
        assert found["pretraining"][name]["runs"][0]["train"] == 6
        assert len(found["pretraining"][name]["runs"]) == 2  # one for each learning rate
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + 5
    assert len({row.count("|") for row in rows}) == 1
    capsys.readouterr()
    assert bert.main(arguments) == 0  # everything is there already
    assert "Model:" not in capsys.readouterr().err


def test_reviews_are_in_their_folds(data):
    folds = bert.reviews(data)
    assert [len(fold) for fold in folds] == [4] * 10
    assert {example["label"] for example in folds[7]} == {"neg", "pos"}


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    assert script("bert").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bert.main(["--data", str(tmp_path / "nowhere")])
    assert "nowhere" in capsys.readouterr().err
