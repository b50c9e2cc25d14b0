"""Pairs of texts with the models made for them: answers and explanations say which word was held against which."""

import csv
import json
import random

import pytest
import torch

import saccade
from saccade import record
from saccade.fields import Text
from saccade.models import AttentionPooling, LSTMNPair, WordByWord
from saccade.tasks import Classification, Rating

PAIRS = [
    {"premise": "a cat sleeps", "hypothesis": "an animal sleeps", "label": "yes", "number": 4.5},
    {"premise": "a dog runs near the old house", "hypothesis": "a cat runs", "label": "no", "number": 2.0},
    {"premise": "a dog", "hypothesis": "no dog barks", "label": "no", "number": 1.0},
]
SMALL = {"embedding_dim": 5, "hidden_dim": 7, "dropout": 0.0}
MODELS = {
    "word_by_word": (WordByWord, {}, "attention"),
    "shallow": (LSTMNPair, {"fusion": "shallow"}, "attention"),
    "deep": (LSTMNPair, {"num_layers": 2}, "encoder_b.layers.1.source_attention"),
    "word_by_word, compare": (WordByWord, {"compare": True}, "attention"),
    "shallow, compare": (LSTMNPair, {"fusion": "shallow", "compare": True}, "attention"),
    "deep, compare": (LSTMNPair, {"num_layers": 2, "compare": True}, "encoder_b.layers.1.source_attention"),
}


def fitted(name, kind=Classification):
    task = kind(inputs={"premise": Text(tokeniser="word"), "hypothesis": Text(tokeniser="word")})
    task.fit(PAIRS)
    torch.manual_seed(3)
    made, options, _ = MODELS[name]
    return task, task.build(made, **SMALL, **options).eval()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [Classification, Rating])
def test_answers_have_the_words_of_one_text_against_those_of_the_other(name, kind):
    task, model = fitted(name, kind)
    together = task.predict(model, PAIRS)
    for pair, answer in zip(PAIRS, together, strict=True):
        assert answer.attention.queries == [*pair["hypothesis"].split(), "</s>"]
        assert answer.attention.keys == [*pair["premise"].split(), "</s>"]
        (alone,) = task.predict(model, [pair])
        torch.testing.assert_close(answer.weights, alone.weights)
        with record(model) as trace:
            model(*task.given(task.collate([task.encode(pair)], generator=torch.Generator())))
        torch.testing.assert_close(answer.weights, trace.joined(MODELS[name][2])[0, 0])


@pytest.mark.parametrize("name", MODELS)
def test_the_page_draws_each_attention_between_its_texts(name):
    task, model = fitted(name)
    for item, pair in zip(task.explain(model, PAIRS), PAIRS, strict=True):
        premise, hypothesis = ([*pair[role].split(), "</s>"] for role in ("premise", "hypothesis"))
        maps = {each.name: each for each in item.maps}
        across = maps.pop(MODELS[name][2])
        assert (across.queries.pieces, across.keys.pieces) == (hypothesis, premise)
        assert across.sides == ("hypothesis", "premise")
        assert item.title.startswith(f"{pair['premise']} | {pair['hypothesis']} → ")
        for path, drawn in maps.items():
            text = premise if path.startswith("encoder_a") else hypothesis
            assert drawn.queries.pieces == text
            if path.endswith("source_attention"):
                assert drawn.keys.pieces == premise
            else:  # what an LSTMN reads of its own text: words before each word
                assert drawn.keys.pieces == text
                assert drawn.sides is None
                assert not drawn.weights.triu().any()
                torch.testing.assert_close(drawn.weights[:, 1:].sum(-1), torch.ones(1, len(text) - 1))
        assert len(maps) == {"word_by_word": 0, "shallow": 2, "deep": 5}[name.removesuffix(", compare")]


def test_unknown_words_of_all_texts_are_listed():
    task, model = fitted("word_by_word")
    (item,) = task.explain(model, [{"premise": "a zebra", "hypothesis": "a dog yawns"}])
    assert next(each.value for each in item.measures if each.name == "unknown") == "2: zebra yawns"


def test_a_single_text_read_by_an_lstmn():
    task = Classification()
    examples = [{"text": pair["premise"], "label": pair["label"]} for pair in PAIRS]
    task.fit(examples)
    model = task.build(AttentionPooling, encoder="lstmn", pooling="average", **SMALL)
    (answer,) = task.predict(model, examples[:1])
    assert answer.attention is None  # every step counts the same
    (item,) = task.explain(model, examples[:1])
    (drawn,) = item.maps
    assert drawn.queries.pieces == drawn.keys.pieces == ["a", "cat", "sleeps", "</s>"]


@pytest.fixture
def sick(tmp_path, monkeypatch):
    """Whether the second text names the same animal, and how similar the texts are."""
    monkeypatch.chdir(tmp_path)
    draws = random.Random(5)
    for name, count in (("pairs.csv", 60), ("test.csv", 9)):
        with open(name, "w") as file:
            rows = csv.writer(file)
            rows.writerow(["sentence_A", "sentence_B", "entailment_label", "relatedness_score"])
            for _ in range(count):
                thing, other = draws.sample(["cat", "dog", "hen", "cow"], 2)
                said = draws.choice([thing, other])
                same = said == thing
                rows.writerow([f"a {thing} sleeps", f"it is the {said}", "yes" if same else "no", 5.0 if same else 2.5])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("classification/pairs", "label: entailment_label"),
        ("classification/pairs-lstmn", "label: entailment_label"),
        ("rating/pairs", "number: relatedness_score"),
    ],
)
def test_the_configurations_from_a_file_to_a_page(name, target, sick, call):
    columns = f"{{premise: sentence_A, hypothesis: sentence_B, {target}}}"
    small = ("--model.hidden_dim", "12", "--model.embedding_dim", "8", "--trainer.max_steps", "2")
    data = ("--data.train", "pairs.csv", "--data.columns", columns, "--output", "run")
    code, _, err = call("train", name, *data, *small)
    assert code == 0, err
    code, out, err = call("evaluate", "run", "--data", "test.csv", "--json")
    assert code == 0, err
    code, out, err = call("predict", "run", "test.csv", "--format", "jsonl")
    assert code == 0, err
    first = json.loads(out.splitlines()[0])
    assert list(first["input"]) == ["premise", "hypothesis"]
    assert len(first["queries"]) == len(first["weights"]) == 5
    assert len(first["keys"]) == len(first["weights"][0]) == 4
    pair = json.dumps({"premise": "a cat sleeps", "hypothesis": "it is the cow"})
    code, out, err = call("explain", "run", "--input", pair, "--format", "json")
    assert code == 0, err
    maps = json.loads(out)["items"][0]["maps"]
    assert any(len(each["queries"]["pieces"]) == 5 and len(each["keys"]["pieces"]) == 4 for each in maps)
    code, _, err = call("explain", "run", "--input", "a cat")
    assert code != 0
    assert "--input is not a JSON object such as" in err


def test_the_configuration_of_an_lstmn_trains(tmp_path):
    texts = [{"text": f"a {word} film", "label": "pos" if word == "good" else "neg"} for word in ("good", "bad") * 20]
    overrides = {"model.hidden_dim": 12, "model.embedding_dim": 8, "trainer.max_steps": 2}
    data = {"train": texts, "valid": texts[:2]}
    run = saccade.train("classification/lstmn", data=data, overrides=overrides, output=tmp_path / "run")
    assert type(run.model.encoder).__name__ == "LSTMNEncoder"
    assert saccade.load(tmp_path / "run").predict(["a good film"])[0].value in ("pos", "neg")
