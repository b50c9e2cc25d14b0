"""Documents are learned from the command line: train, evaluate, predict, explain, resume and the model card."""

import csv
import json
import random

import pytest

import saccade
from saccade.cli import main

WORDS = ["The film", "Dr. Smith", "Its plot", "One scene", "The hero"]
VERBS = ["was long", "came late", "made noise", "had costs", "took time"]
CUES = {"good": ["was superb", "shone"], "bad": ["was awful", "bored"], "mixed": []}


def reviews(count, seed):
    """Some sentences, one of which decides unless the label is mixed, as (sentences, label)."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        label = draw.choice(sorted(CUES))
        sentences = [f"{draw.choice(WORDS)} {draw.choice(VERBS)}." for _ in range(draw.randint(2, 6))]
        if CUES[label]:
            sentences.insert(draw.randrange(len(sentences) + 1), f"{draw.choice(WORDS)} {draw.choice(CUES[label])}.")
        found.append((sentences, label))
    return found


def table(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("body", "stars"), *((" ".join(sentences), label) for sentences, label in rows)])


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    table(folder / "reviews.csv", reviews(300, 1))
    table(folder / "test.csv", reviews(50, 2))
    with (folder / "split.jsonl").open("w") as file:
        for sentences, label in reviews(40, 3):
            print(json.dumps({"text": ["", *sentences], "label": label}), file=file)
    return folder


def train(work, name, *given):
    common = ["--trainer.max_steps", "50", "--trainer.validate_every", "25", "--trainer.batch_tokens", "600"]
    common += ["--trainer.learning_rate", "0.02", "--model.embedding_dim", "12", "--model.hidden_dim", "7"]
    common += ["--model.context_dim", "5", "--model.dropout", "0", "--trainer.max_epochs", "null"]
    assert main(["train", "classification/han", "--output", str(work / name), *common, *given]) == 0
    return str(work / name)


@pytest.fixture(scope="module")
def run(work):
    columns = ["--data.columns", "{text: body, label: stars}"]
    return train(work, "run", "--data.train", str(work / "reviews.csv"), *columns)


def test_it_learns_and_looks_at_the_sentence_that_decides(work, run, call):
    code, out, _ = call("evaluate", run, "--data", str(work / "test.csv"))
    assert code == 0
    assert float(out.split("accuracy")[1].split()[0]) >= 95.0
    tests = [(sentences, label) for sentences, label in reviews(30, 3) if CUES[label]]
    hits = 0
    for item, (sentences, label) in zip(saccade.load(run).explain([" ".join(s) for s, _ in tests]), tests, strict=True):
        weights = next(each for each in item.maps if each.name == "sentences.pooling")
        hits += any(cue in sentences[int(weights.weights[0, 0].argmax())] for cue in CUES[label])
        assert weights.keys.pieces == sentences  # split as they were made, "Dr." included
    assert hits >= 0.9 * len(tests)


def test_predictions_have_the_weights_of_words(work, run, call):
    code, out, err = call("predict", run, str(work / "test.csv"), "--columns", "text=body", "--format", "jsonl")
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 50
    for line, (sentences, _) in zip(lines, reviews(50, 2), strict=True):
        assert line["input"] == " ".join(sentences)
        assert len(line["keys"]) == len(line["weights"][0])
        assert sum(line["weights"][0]) == pytest.approx(1.0, abs=5e-3)


def test_predictions_are_drawn_as_bars(run, call):
    code, out, _ = call("predict", run, "--draw", given=f"{'The film was long. ' * 9}One scene was superb.\n\n")
    assert code == 0
    assert out.splitlines()[0] == "good"
    assert "superb  0." in out
    assert len([line for line in out.splitlines() if line in CUES]) == 1  # the empty line has an empty answer


def test_long_documents_are_truncated_and_counted(work, call, capsys):
    limits = ["--task.inputs.text.max_sentences", "4", "--task.inputs.text.max_words", "3", "--trainer.max_steps", "1"]
    limits += ["--data.train", str(work / "reviews.csv"), "--data.columns", "{text: body, label: stars}"]
    capsys.readouterr()
    short = train(work, "short", *limits)
    err = capsys.readouterr().err
    lines = [line.split(":", 1) for line in err.splitlines() if line.startswith("  Truncated")]
    told = {reason.strip(): int(first.split()[1]) for first, reason in lines}
    both = "text with more than max_sentences=4 sentences and sentences of more than max_words=3 tokens."
    assert told[both] > 100
    assert f"Truncated: {told[both]}" in (work / "short" / "README.md").read_text()
    code, out, err = call("predict", short, str(work / "test.csv"), "--columns", "text=body")
    assert (code, len(out.splitlines())) == (0, 50)
    named = [line for line in err.splitlines() if line.startswith("Input ")]
    assert len(named) == 5
    assert named[0].endswith("tokens: the rest is not read.")
    assert err.splitlines()[-1].endswith("of 50 inputs were too long and were truncated.")
    with pytest.warns(UserWarning, match="has a text with more than max_sentences=4 sentences"):
        saccade.load(short).predict(["good film. " * 9])


def test_sentences_that_are_given(work, call):
    given = ["--data.train", str(work / "split.jsonl"), "--task.inputs.text.sentences", "given"]
    run = train(work, "given", *given, "--trainer.max_steps", "2")
    code, out, _ = call("predict", run, str(work / "split.jsonl"), "--format", "jsonl")
    assert code == 0
    assert len(out.splitlines()) == 40
    (item,) = saccade.load(run).explain([["", "One. Two.", "Three."]])
    assert item.maps[0].keys.pieces == ["One. Two.", "Three."]


SENTENCES = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("way", ["given", "split"])
def test_documents_of_any_length(work, call, way):
    """An empty sentence, one word, and ten thousand sentences, in training, predictions and explanations."""
    many = [f"The film {VERBS[n % 5]}." for n in range(SENTENCES)]
    texts = [["", "One scene shone.", ""], ["Superb"], many]
    cells = texts if way == "given" else [" ".join(text) for text in texts]
    file = work / f"odd-{way}.jsonl"
    rows = [{"text": cell, "label": label} for cell, label in zip(cells, ("good", "good", "bad"), strict=True)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["--data.train", str(file), "--data.valid", str(file), "--trainer.max_steps", "2"]
    given += ["--task.inputs.text.max_sentences", str(SENTENCES), "--task.inputs.text.sentences", way]
    run = train(work, f"odd-{way}", *given, "--trainer.validate_every", "2")
    code, out, _ = call("predict", run, str(file), "--format", "jsonl")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [len(line["keys"]) for line in lines] == [4, 1, 5 * SENTENCES]
    for line in lines:
        assert sum(line["weights"][0]) == pytest.approx(1.0, abs=0.02)
    page = work / f"odd-{way}.html"
    code, _, _ = call("explain", run, str(file), "--output", str(page))
    assert code == 0
    assert page.stat().st_size < 6_000_000
    item = saccade.load(run).explain([cells[2]])[0]
    assert len(item.maps[0].keys.pieces) == SENTENCES


def test_explanations(run, call, tmp_path):
    code, out, _ = call("explain", run, "--input", "The film was long. It was awful. Its plot shone.")
    assert code == 0
    for name in ("words.pooling", "document", "sentences.pooling"):
        assert f"{name}: " in out
    assert "It was awful." in out
    page = tmp_path / "page.html"
    table(tmp_path / "new.csv", reviews(2, 5))
    code, _, _ = call("explain", run, str(tmp_path / "new.csv"), "--columns", "text=body", "--output", str(page))
    assert code == 0
    assert page.stat().st_size > 10_000
