"""The command at toy scale, on reviews in an archive of the form of the real one."""

import io
import json
import random
import tarfile
from argparse import Namespace

import pytest

from tests.reproductions.scripts import script, tiny_bert

han = script("han")
cues = han.cues


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two reviews of each label in each of three folds; their sentences end in known words."""
    draw = random.Random(1)
    path = tmp_path_factory.mktemp("han") / "review_polarity.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for label, word in (("pos", "superb"), ("neg", "awful")):
            for number in (0, 1, 10, 100, 110, 111, 205, 210):
                sentences = [" ".join(draw.choices("abcdefg", k=6)) + f" {word} . \n" for _ in range(3)]
                content = "".join(sentences).encode()
                member = tarfile.TarInfo(f"txt_sentoken/{label}/cv{number:03}_{number + 7}.txt")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        archive.addfile(tarfile.TarInfo("poldata.README.2.0"))
    return path


def test_folds_are_the_hundreds_and_nothing_of_the_test_fold_is_trained_on(data, tmp_path, monkeypatch):
    reviews = han.read_reviews(data)
    assert len(reviews) == 16
    assert {(review.fold, review.number) for review in reviews} == {
        (0, 0), (0, 1), (0, 10), (1, 0), (1, 10), (1, 11), (2, 5), (2, 10)
    }  # fmt: skip
    assert all(len(review.sentences) == 3 for review in reviews)
    given = {}

    def train(config, *, data, **arguments):
        given.update(data)
        raise KeyboardInterrupt

    monkeypatch.setattr(han.saccade, "train", train)
    with pytest.raises(KeyboardInterrupt):
        han.tested("HAN, attention", 1, reviews, Namespace(runs=tmp_path, steps=1, tune=False, dropout=None))
    parts = {name: [tuple(row["text"]) for row in rows] for name, rows in given.items()}
    known = {tuple(review.sentences): review for review in reviews}
    assert {(known[text].fold, known[text].number) for text in parts["valid"]} == {(0, 0), (0, 10), (2, 10)}
    assert {(known[text].fold, known[text].number) for text in parts["train"]} == {(0, 1), (2, 5)}


def test_models_are_trained_tested_and_not_tested_again(data, tmp_path, capsys):
    output, runs = tmp_path / "results", tmp_path / "runs"
    arguments = ["--data", str(data), "--output", str(output), "--runs", str(runs), "--folds", "0", "2"]
    arguments += ["--steps", "2", "--documents", "60", "--models", "HAN, attention", "flat GRU, attention"]
    arguments += ["MiniLM, fine-tuned", "--minilm", str(tiny_bert(tmp_path))]
    usual = cues.TRAINER, cues.TESTS
    cues.TRAINER, cues.TESTS = {**usual[0], "max_steps": 2}, 20
    try:
        assert han.main(arguments) == 0
    finally:
        cues.TRAINER, cues.TESTS = usual
    found = json.loads((output / "results.json").read_text())
    for name in ("HAN, attention", "flat GRU, attention", "MiniLM, fine-tuned"):
        assert [each["fold"] for each in found["reviews"][name]] == [0, 2]
        assert all(1 <= each["steps"] <= 2 and 0 <= each["accuracy"] <= 100 for each in found["reviews"][name])
    assert found["cues"]["HAN, max"]["word"] is None
    assert 0 <= found["cues"]["HAN, attention"]["sentence"] <= 100
    table = (output / "table.md").read_text()
    assert "| SVM (published) | 87.15 | 0 to 9 |" in table
    assert not [folder for folder in runs.iterdir() if folder.is_dir()]
    capsys.readouterr()
    assert han.main(arguments) == 0  # everything is known
    assert "step" not in capsys.readouterr().err
    assert json.loads((output / "results.json").read_text()) == found
    some = ["--parts", "reviews", "--models", "HAN, attention", "--folds", "2"]
    assert han.main([*arguments, *some]) == 0  # the rest stays as it was measured
    assert json.loads((output / "results.json").read_text()) == found


def test_what_was_trained_to_choose_settings_is_not_trained_again(data, tmp_path, monkeypatch):
    output, runs = tmp_path / "results", tmp_path / "runs"
    arguments = ["--data", str(data), "--output", str(output), "--runs", str(runs), "--folds", "1", "--steps", "2"]
    arguments += ["--parts", "reviews", "--models", "HAN, max"]
    trained = []
    train = han.saccade.train
    monkeypatch.setattr(han.saccade, "train", lambda *given, **named: trained.append(named) or train(*given, **named))
    for dropout in ("0.3", "0.2"):
        assert han.main([*arguments, "--tune", "--dropout", dropout]) == 0
    assert han.main([*arguments, "--tune"]) == 0
    assert [each["model"]["dropout"] for each in trained] == [0.3, 0.2, han.VARIANTS["HAN, max"].model["dropout"]]
    assert not output.exists()
    assert han.main(arguments) == 0
    assert len(trained) == 3
    (found,) = json.loads((output / "results.json").read_text())["reviews"]["HAN, max"]
    assert found["fold"] == 1
    assert 0 <= found["accuracy"] <= 100


def test_cues_decide_and_their_places_are_known():
    sentences = [" ".join(random.Random(n).choices("abcdefgh", k=n % 30 + 1)) for n in range(90)]
    made = cues.make_documents([*sentences, "they never came back from there"], 300, 1)
    owner = {word: label for label, words in cues.CUES.items() for word in words}
    for document in made:
        words = [sentence.split() for sentence in document.sentences]
        places = [(i, j) for i, own in enumerate(words) for j, word in enumerate(own) if word in owner]
        assert 5 <= len(words) <= 10
        if document.label == cues.NONE:
            assert (places, document.sentence) == ([], -1)
        else:
            assert places == [(document.sentence, document.word)]
            assert owner[words[document.sentence][document.word]] == document.label
    assert {document.label for document in made} == {"yes", "no", "none"}


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("REVIEW_POLARITY", raising=False)
    assert script("han").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        han.main(["--data", str(tmp_path / "no.tar.gz")])
    assert "no.tar.gz" in capsys.readouterr().err
