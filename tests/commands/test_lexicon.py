"""`saccade lexicon`, and a training with what it wrote."""

import json
import random

import pytest

import saccade
from saccade.cli import main
from saccade.data.lexicons import read_lexicon

KEY = {f"s{n}": f"t{(7 * n) % 20}" for n in range(20)}


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    letters = random.Random(7)
    sources = [letters.choices(list(KEY), k=letters.randint(2, 6)) for _ in range(80)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{' '.join(s)}\t{' '.join(KEY[w] for w in s)}\n" for s in sources))
    (tmp_path / "links.txt").write_text("".join(" ".join(f"{n}-{n}" for n in range(len(s))) + "\n" for s in sources))
    return tmp_path


@pytest.mark.parametrize("options", [[], ["--method", "ibm1"], ["--alignment", "links.txt"]])
def test_finds_the_translation_of_every_word(pairs, options, capsys):
    (pairs / "words.tsv").write_text("new\tneu\ns1\twrong\n")
    assert main(["lexicon", "pairs.tsv", "--output", "out.tsv", "--dictionary", "words.tsv", *options]) == 0
    assert "out.tsv: 21 words (1 of them from words.tsv)" in capsys.readouterr().out
    found = read_lexicon(pairs / "out.tsv")
    assert {word: next(iter(targets)) for word, targets in found.items()} == {**KEY, "new": "neu"}
    if "--alignment" in options:
        assert found["s3"] == {KEY["s3"]: 1.0}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "nothing to learn from"),
        (["--dictionary", "words.tsv", "--alignment", "links.txt"], "give the pairs as well"),
        (["pairs.tsv", "--method", "ibm2"], "Did you mean 'ibm1'"),
        (["pairs.tsv", "--least", "1"], "--least must be above 0 and below 1"),
        (["pairs.tsv", "--tokeniser", "bpe"], "--tokeniser must be word or pretokenised"),
        (["pairs.tsv", "--alignment", "short.txt"], "80"),
        (["pairs.tsv", "--alignment", "wrong.txt"], "line 1: the link 0-99 is to a word that does not exist"),
    ],
)
def test_mistakes_are_named(pairs, arguments, problem, capsys):
    (pairs / "words.tsv").write_text("a\tb\n")
    (pairs / "short.txt").write_text("0-0\n")
    (pairs / "wrong.txt").write_text("0-99\n" * 80)
    assert main(["lexicon", *arguments, "--output", "out.tsv"]) == 2
    assert problem in capsys.readouterr().err
    assert not (pairs / "out.tsv").exists()


@pytest.mark.parametrize("mode", ["bias", "linear"])
def test_a_model_learns_with_a_lexicon_and_keeps_it(pairs, mode, capsys):
    assert main(["lexicon", "pairs.tsv", "--output", "lexicon.tsv"]) == 0
    settings = {
        "data.train": "pairs.tsv",
        "task.source.tokeniser.class": "pretokenised",
        "model.embedding_dim": "8",
        "model.hidden_dim": "12",
        "model.head": f"{{class: lexicon, mode: {mode}, entries: 3}}",
        "trainer.max_steps": "4",
        "trainer.validate_every": "2",
        "trainer.batch_tokens": "90",
    }
    run = saccade.train("translation/rnnsearch-lexicon", output=pairs / "run", overrides=settings)
    assert "lexicon.tsv translates 20 of the 24 source tokens" in capsys.readouterr().err
    (pairs / "lexicon.tsv").unlink()
    again = saccade.load(pairs / "run")
    (first,), (second,) = (each.predict(["s1 s2 s3"], min_length=3, max_length=5) for each in (run, again))
    assert first.text == second.text
    assert first.origins == second.origins
    assert {origin.way for origin in first.origins} <= {"generate", "lexicon"}
    if mode == "bias":  # which is all that an untrained model goes by
        assert any(origin.way == "lexicon" and origin.key.startswith("s") for origin in first.origins)
    assert main(["predict", "run", "--format", "jsonl", "--output", "out.jsonl", "pairs.tsv"]) == 0
    line = json.loads((pairs / "out.jsonl").read_text().splitlines()[0])
    assert line["nbest"][0]["origins"]


def test_the_head_and_the_lexicon_belong_together(pairs):
    saccade_yaml = {"data.train": "pairs.tsv", "trainer.max_steps": "1"}
    with pytest.raises(ValueError, match=r"set model\.head to lexicon"):
        saccade.train(
            "translation/rnnsearch", output=pairs / "run", overrides={**saccade_yaml, "task.lexicon": "lexicon.tsv"}
        )
    with pytest.raises(ValueError, match=r"set task\.lexicon to a lexicon"):
        saccade.train(
            "translation/rnnsearch-lexicon", output=pairs / "run", overrides={**saccade_yaml, "task.lexicon": "null"}
        )
