"""A label for each word: loss, answers, figures and explanations, from a file to a page."""

import json
import math
import random

import pytest
import torch

import saccade
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.data.tokenisers import BpeTokeniser
from saccade.fields import Label, Node, Tags, Text, WordPieces
from saccade.models import AttentionPooling, Tagger
from saccade.tasks import Classification
from saccade.tasks.tagging import at_words
from saccade.training import seed_everything

EXAMPLES = [
    {"text": "the dog barks", "label": ["DET", "NOUN", "VERB"]},
    {"text": "dogs bark", "label": ["NOUN", "VERB"]},
    {"text": "bark", "label": ["NOUN"]},
    {"text": "the bark of the dog barks", "label": ["DET", "NOUN", "ADP", "DET", "NOUN", "VERB"]},
]
SMALL = {"embedding_dim": 7, "hidden_dim": 5, "dropout": 0.0}
TOKENISERS = {"word": "word", "char": "char", "bpe": BpeTokeniser(vocab_size=23)}


def fitted(tokeniser="word", max_length=256, **arguments):
    task = Classification(inputs={"text": Text(tokeniser=tokeniser, max_length=max_length)}, label=Tags(), **arguments)
    task.fit(EXAMPLES)
    seed_everything(3)
    return task, task.build(Tagger, **SMALL).eval()


@pytest.mark.parametrize("name", TOKENISERS)
def test_the_first_piece_of_a_word_carries_its_tag(name):
    task, model = fitted(TOKENISERS[name])
    tokeniser = task.inputs["text"].tokeniser
    for example in EXAMPLES:
        row = task.encode(example)
        pieces = tokeniser.pieces(row["text"][:-1])
        begun = [place for place, _ in enumerate(pieces) if tokeniser.join(pieces[:place]).strip() in _starts(example)]
        first = [min(p for p in begun if tokeniser.join(pieces[:p]).strip() == start) for start in _starts(example)]
        skipped = [place + (pieces[place].isspace()) for place in first]  # a space is a piece of no word
        assert row["places"] == skipped
    assert task.sizes()["classes"] == 4
    assert model(*task.given(task.collate([task.encode(EXAMPLES[0])]))).shape[2] == 4


def _starts(example) -> list[str]:
    """The text before each word."""
    words = example["text"].split()
    return [" ".join(words[:place]) for place in range(len(words))]


@pytest.mark.parametrize("name", TOKENISERS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_loss_by_hand(name, smoothing):
    task, model = fitted(TOKENISERS[name], label_smoothing=smoothing)
    model.train()
    total, plain, right, words = 0.0, 0.0, 0, 0
    for example in EXAMPLES:  # alone, without padding
        row = task.encode(example)
        found = model(torch.tensor([row["text"]]), torch.ones(1, len(row["text"]), dtype=torch.bool))[0]
        for place, tag in zip(row["places"], example["label"], strict=True):
            z = found[place].tolist()
            norm = math.log(sum(map(math.exp, z)))
            one = norm - z[task.label.names.index(tag)]
            plain += one
            total += (1 - smoothing) * one + smoothing * sum(norm - each for each in z) / 4
            right += z[task.label.names.index(tag)] == max(z)
            words += 1
    loss = task.loss(model, task.collate([task.encode(example) for example in EXAMPLES]))
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.parts["loss"].item() == pytest.approx(plain, rel=1e-5)
    assert loss.parts["accuracy"].item() == right
    assert int(loss.count) == words == 12
    assert task.unit == "words"


@pytest.mark.parametrize("name", TOKENISERS)
def test_answers_do_not_depend_on_the_batch(name):
    task, model = fitted(TOKENISERS[name])
    texts = [example["text"] for example in EXAMPLES]
    for text, together in zip(texts, task.predict(model, texts, batch_size=3), strict=True):
        (alone,) = task.predict(model, [text])
        assert together.value == alone.value
        assert together.details["words"] == together.attention.queries == text.split()
        assert together.details["probabilities"] == pytest.approx(alone.details["probabilities"], abs=1e-5)
        assert together.score == min(together.details["probabilities"])
        assert task.cells(together, None) == [" ".join(together.value)]
        assert together.weights.shape == (len(text.split()), len(together.attention.keys))
        assert together.weights.sum(1).tolist() == pytest.approx([1.0] * len(text.split()), abs=1e-5)
        torch.testing.assert_close(together.weights, alone.weights, atol=1e-5, rtol=1e-4)


def test_an_empty_text_has_no_tags():
    task, model = fitted()
    empty, full = task.predict(model, ["", "dogs bark"])
    assert (empty.value, empty.score) == ([], 1.0)
    assert len(full.value) == 2


def test_of_a_long_text_the_first_words_are_tagged():
    task, _ = fitted("char")
    model = task.build(Tagger, **SMALL, encoder="convolutional", max_length=9)
    text = "the dog barks"
    (answer,) = task.predict(model, [text])
    assert answer.details["words"] == ["the", "dog"]  # 8 characters are read
    assert answer.attention.keys == [*"the dog ", "</s>"]
    assert answer.weights.shape == (2, 9)
    assert "13 tokens, but the model only reads the first 8" in task.truncated(model, [text])[0]
    assert task.evaluate(model, [EXAMPLES[0]])["accuracy"] <= 100 * 2 / 3 + 0.1
    (item,) = task.explain(model, [{"text": text}])
    assert item.maps[0].keys.pieces == [*"the dog ", "</s>"]
    with pytest.raises(ValueError, match="9 positions are too few for a text of max_length=256"):
        task.check(model)


def test_counts_that_differ_are_named_with_their_place():
    task, _ = fitted()
    cell = Cell("words.csv", 7, "row")
    for example in EXAMPLES:
        task.check_example(example, cell)
    with pytest.raises(BadRow, match=r"words\.csv, line 7: the text has 2 words but 3 tags\. Give one tag per word"):
        task.check_example({"text": "dogs bark", "label": ["NOUN", "VERB", "VERB"]}, cell)


def test_models_that_do_not_fit_are_named():
    task, tagger = fitted()
    batch = task.collate([task.encode(example) for example in EXAMPLES])
    with pytest.raises(ValueError, match=r"tags need a model that returns \(batch, positions, classes\)"):
        task.loss(task.build(AttentionPooling, **SMALL), batch)
    one = Classification(inputs={"text": task.inputs["text"]}, label=Label(names=["a", "b"]))
    with pytest.raises(ValueError, match=r"a label needs a model that returns \(batch, classes\)"):
        one.loss(tagger, one.collate([one.encode({"text": "dogs bark", "label": "a"})]))
    with pytest.raises(ValueError, match="every word has one tag"):
        task.predict(tagger, ["dogs"], top=2)
    with pytest.raises(ValueError, match="first input is Node"):
        Classification(inputs={"node": Node(graph="graph.npz")}, label="tags")
    with pytest.raises(ValueError, match="Unknown metric 'auroc'"):
        Classification(label="tags", metrics=["auroc"])
    with pytest.raises(ValueError, match="Unknown metric 'entity_f1'"):
        Classification(metrics=["entity_f1"])


def test_positions_by_a_loop():
    found, places = torch.randn(2, 5, 3), [[4, 0], [2]]
    batch = {
        "label_places": torch.tensor([[4, 0], [2, 0]]),
        "label_places_mask": torch.tensor([[True] * 2, [True, False]]),
    }
    wanted = [found[row, place].tolist() for row, several in enumerate(places) for place in several]
    assert at_words(found, batch).tolist() == wanted


def towns(count: int, seed: int) -> list[dict[str, list[str]]]:
    """Sentences in which a name belongs to a place after "in", and to a person elsewhere."""
    draws = random.Random(seed)
    found = []
    for _ in range(count):
        words, tags = [], []
        for _ in range(draws.randint(1, 4)):
            if draws.random() < 0.5:
                words += ["in"]
                tags += ["O"]
                kind = "place"
            else:
                kind = "person"
            name = draws.choices(["Florence", "Austin", "Carter", "Paris"], k=draws.randint(1, 2))
            words += [*name, draws.choice(["sings", "waits", "and"])]
            tags += [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1), "O"]
        found.append({"text": words, "label": tags})
    return found


def test_from_a_file_to_a_page(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train.jsonl", 1), ("test.jsonl", 2)):
        rows = towns(300 if seed == 1 else 50, seed)
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    sizes = ("--model.embedding_dim", "16", "--model.hidden_dim", "16", "--model.dropout", "0")
    trainer = ("--trainer.max_epochs", "8", "--trainer.learning_rate", "0.01", "--trainer.batch_tokens", "400")
    figures = ("--task.metrics", "[accuracy, macro_f1, entity_f1]")
    code, _, err = call(
        "train", "classification/tags", "--data.train", "train.jsonl", *sizes, *trainer, *figures, "--output", "run"
    )
    assert code == 0, err
    assert "label: 5 classes: B-person" in err
    code, out, err = call("evaluate", "run", "--data", "test.jsonl", "--json")
    assert code == 0, err
    found = json.loads(out)["figures"]
    assert found["accuracy"] > 95
    assert found["entity_f1"] > 90
    code, out, _ = call("predict", "run", given="Paris Carter waits in Paris\n")
    assert (code, out) == (0, "B-person I-person O O B-place\n")
    code, out, _ = call("predict", "run", "--format", "jsonl", given="in Austin\n")
    shown = json.loads(out)
    assert (shown["answer"], shown["words"]) == (["O", "B-place"], ["in", "Austin"])
    assert shown["queries"] == ["in", "Austin"]
    code, out, err = call("explain", "run", "--input", "in Austin", "--target", "O B-person", "--format", "json")
    assert code == 0, err
    measures = {each["name"]: each["value"] for each in json.loads(out)["items"][0]["measures"]}
    assert measures["tags"] == "in/O Austin/B-place"
    assert measures["wrong"] == "Austin/B-place instead of B-person"
    code, _, err = call("explain", "run", "--input", "in Austin", "--target", "O")
    assert code != 0
    assert "the text has 2 words but 1 tag" in err
    again = saccade.load("run").predict(["in Austin"])[0]
    assert again.value == ["O", "B-place"]


@pytest.mark.parametrize("skip", [False, True])
def test_a_row_with_too_few_tags(skip, tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{e['text']},{' '.join(e['label'])}\n" for e in EXAMPLES * 30)
    (tmp_path / "words.csv").write_text(f"text,label\n{rows}dogs bark,NOUN\n")
    (tmp_path / "valid.csv").write_text(f"text,label\n{rows}")
    small = ("--model.embedding_dim", "4", "--model.hidden_dim", "4", "--trainer.max_steps", "1", "--output", "run")
    skipping = ("--data.bad_rows", "skip") if skip else ()
    columns = ("--data.columns", "text=text,label=label", "--data.valid", "valid.csv", "--trainer.max_epochs", "null")
    code, _, err = call("train", "classification/tags", "--data.train", "words.csv", *columns, *small, *skipping)
    assert (code == 0) is skip, err
    assert "words.csv, line 122: the text has 2 words but 1 tag" in err
    if skip:
        assert "skipped 1 bad row" in err


def test_bert_tags_words_by_their_first_pieces(tmp_path):
    run = saccade.train(
        "classification/bert-tags",
        data={"train": EXAMPLES * 5, "held_out": 0},
        model={"dim": 14, "num_layers": 1},
        output=tmp_path / "run",
        overrides={"trainer.max_steps": 2, "trainer.metric": "loss", "task.inputs.text.vocab_size": 43},
    )
    task = run.task
    batch = task.collate([task.encode(example) for example in EXAMPLES])
    logits = run.model(*task.given(batch))
    assert logits.shape == (*batch["text"].shape, 4)
    tokeniser = task.inputs["text"].tokeniser
    rows = []
    for row, example in enumerate(EXAMPLES):
        place = 1  # after [CLS]
        for word in example["text"].split():
            rows.append(logits[row, place])
            place += len(tokeniser.encode(word))
    torch.testing.assert_close(task.logits(run.model, batch), torch.stack(rows))
    (answer,) = run.predict([EXAMPLES[0]["text"]])
    assert answer.details["words"] == ["the", "dog", "barks"]
    assert len(answer.value) == 3
    assert answer.weights.shape == (3, len(task.inputs["text"].encode(EXAMPLES[0]["text"])["ids"]))
    (item,) = run.explain([EXAMPLES[0]["text"]])
    assert len(item.maps) == 1


def test_texts_that_bert_does_not_read_to_their_end_are_left_out():
    task = Classification(inputs={"text": WordPieces(vocab_size=43, max_length=5)}, label=Tags())
    task.fit(EXAMPLES)
    long = {"text": "bark bark bark bark", "label": ["NOUN"] * 4}
    assert task.left_out(task.encode(long)) == "text longer than its max_length"
    assert task.left_out(task.encode({"text": "bark bark", "label": ["NOUN"] * 2})) is None
    with pytest.raises(ValueError, match="cut='middle' leaves out some"):
        Classification(inputs={"text": WordPieces(cut="middle")}, label=Tags())
