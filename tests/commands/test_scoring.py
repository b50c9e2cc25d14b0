"""`saccade score`: log-probabilities of texts and words, as text and JSON Lines."""

import json
import math

import pytest

import saccade

WORDS = ("--task.text.tokeniser", "word", "--task.text.max_length", "5")
SMALL = ("--model.dim", "12", "--model.num_layers", "1", "--trainer.max_steps", "3", "--trainer.batch_tokens", "20")


@pytest.fixture
def run(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("the cat sees the dog .\nthe dog sees the cat , too .\n" * 9)
    code, _, err = call("train", "language/lstm", "--data.train", "book.txt", "--output", "run", *WORDS, *SMALL)
    assert code == 0, err
    (tmp_path / "test.txt").write_text("the cat sees, too\nthe zebra .\n")
    return saccade.load("run")


def test_text_and_json_say_the_same(run, call, tmp_path) -> None:
    code, out, err = call("score", "run", "test.txt")
    assert code == 0, err
    wanted = [answer.value for answer in run.predict(["the cat sees, too", "the zebra ."], score=True)]
    assert [float(line) for line in out.splitlines()] == pytest.approx(wanted, abs=1e-3)
    code, out, _ = call("score", "run", "test.txt", "--words")
    assert code == 0
    for line, total in zip(out.splitlines(), wanted, strict=True):
        first, *words = line.split("\t")
        assert float(first) == pytest.approx(total, abs=1e-3)
        assert sum(float(word.rsplit(" ", 1)[1]) for word in words) == pytest.approx(total, abs=1e-2)
    assert [word.rsplit(" ", 1)[0] for word in words] == ["the", "zebra", ".", "</s>"]
    code, _, err = call("score", "run", "test.txt", "--format", "jsonl", "--output", "scores.jsonl")
    assert code == 0
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["the cat sees, too", "the zebra ."]
    assert [each["word"] for each in rows[0]["words"]] == ["the", "cat", "sees,", "too"]  # pieces of a word are summed
    for row in rows:
        assert row["end"] + sum(each["log_prob"] for each in row["words"]) == pytest.approx(row["log_prob"])
        assert row["perplexity"] == pytest.approx(math.exp(-row["log_prob"] / row["tokens"]))
    tokens = sum(row["tokens"] for row in rows)
    whole = math.exp(-sum(row["log_prob"] for row in rows) / tokens)
    assert f"2 texts, {tokens} tokens: perplexity {whole:.4g}, word perplexity" in err


def test_a_cache_and_standard_input(run, call) -> None:
    text = "dog cat " * 9
    alone, cached = (
        float(call("score", "run", *options, given=text + "\n")[1]) for options in ((), ("--cache-size", "9"))
    )
    assert cached > alone
    code, out, err = call("score", "run", given="")
    assert (code, out) == (0, "")
    assert "There was no input." in err


def test_refusals(run, call, tmp_path) -> None:
    assert "--format must be text or jsonl, got 'csv'" in call("score", "run", "--format", "csv", given="")[2]
    assert "set cache_size as well" in call("score", "run", "--cache-weight", "0.5", given="a\n")[2]
    (tmp_path / "pairs.csv").write_text("text,label\n" + "".join(f"good {n},yes\nbad {n},no\n" for n in range(9)))
    labels = ("--data.train", "pairs.csv", "--data.columns", "text=text,label=label", "--output", "labels")
    code, _, err = call("train", "classification/pooling", *labels, "--trainer.max_steps", "1")
    assert code == 0, err
    code, _, err = call("score", "labels", given="good\n")
    assert code == 2
    assert "score needs a language model, but the task of labels is Classification" in err


def test_an_evaluation_with_a_cache_says_so(run, call) -> None:
    code, out, err = call("evaluate", "run", "--data", "test.txt", "--cache-size", "9", "--cache-weight", "0.2")
    assert code == 0, err
    assert "Predicted by a cache of 9 words (weight 0.2, flatness 0.3)" in out
    assert "Perplexity by occurrences in the training data" in out
    wanted = run.evaluate(["test.txt"], cache_size=9, cache_weight=0.2).figures["perplexity"].value
    assert f"{wanted:.2f}" in out
    assert "set score as well" in call("predict", "run", "--cache-size", "9", given="the\n")[2]
