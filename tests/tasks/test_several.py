"""Several inputs: shared vocabularies, and which input an attention is over."""

import json
import random

import pytest
import torch
from torch import nn

from saccade.attention import Attention
from saccade.configuration import ConfigError
from saccade.data.tokenisers import WordTokeniser
from saccade.fields import Evidence, Number, Text
from saccade.interpretation.recording import record
from saccade.layers import TokenEmbedding
from saccade.runs.plan import Plan
from saccade.scores import DotScore
from saccade.selections import Softmax
from saccade.tasks import Classification, Rating
from saccade.tasks.several import shared_vocabularies, tell_apart

PAIRS = [
    {"premise": "a cat sleeps", "hypothesis": "an animal sleeps", "label": "yes"},
    {"premise": "a dog runs", "hypothesis": "a cat runs", "label": "no"},
    {"premise": "a dog", "hypothesis": "no dog barks", "label": "no"},
]


class Comparing(nn.Module):
    """Each word of the second text attends to the first; the mean of what they read, and of themselves, decides."""

    def __init__(self, *, vocab: int, vocab_2: int | None, classes: int, dim: int = 12) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=dim)
        self.other = self.embedding if vocab_2 is None else TokenEmbedding(vocab_size=vocab_2, dim=dim)
        self.across = Attention(score=DotScore(), selection=Softmax())
        self.pool = Attention(score=DotScore(), selection=Softmax())
        self.query = nn.Parameter(torch.randn(dim))
        self.output_proj = nn.Linear(2 * dim, classes)

    def forward(self, premise, premise_mask, hypothesis, hypothesis_mask):
        keys, queries = self.embedding(premise), self.other(hypothesis)
        read = self.across(queries, keys, mask=premise_mask.unsqueeze(1)).context * queries
        query = self.query.expand(len(read), 1, -1)
        pooled = self.pool(
            query, torch.cat([queries, read], -1)[..., : len(self.query)], read, mask=hypothesis_mask.unsqueeze(1)
        )
        mean = (queries * hypothesis_mask.unsqueeze(2)).sum(1) / hypothesis_mask.sum(1, keepdim=True)
        return self.output_proj(torch.cat([pooled.context[:, 0], mean], 1))


def fitted(**arguments):
    inputs = {"premise": Text(tokeniser="word"), "hypothesis": Text(tokeniser="word", max_length=7)}
    task = Classification(inputs=inputs, **arguments)
    task.fit(PAIRS)
    torch.manual_seed(3)
    return task, task.build(Comparing).eval()


def test_texts_that_are_read_alike_share_a_vocabulary():
    task, model = fitted()
    premise, hypothesis = task.inputs.values()
    assert premise.tokeniser is hypothesis.tokeniser
    assert premise.max_length != hypothesis.max_length
    words = {word for pair in PAIRS for role in ("premise", "hypothesis") for word in pair[role].split()}
    assert task.sizes() == {"vocab": 4 + len(words), "vocab_2": None, "classes": 2}
    assert model.other is model.embedding
    assert not hypothesis.unknown("cat no dog")


def test_or_each_has_its_own():
    task, model = fitted(joint=False)
    assert task.sizes() == {"vocab": 4 + 5, "vocab_2": 4 + 9, "classes": 2}
    assert model.other is not model.embedding
    assert task.inputs["hypothesis"].unknown("a dog sleeps today") == ["today"]


def test_what_is_read_differently_shares_nothing():
    texts = {
        "one": Text(tokeniser="word"),
        "two": Text(tokeniser=WordTokeniser(lowercase=True)),
        "three": Text(tokeniser=WordTokeniser(lowercase=True)),
        "number": Number(),
        "four": Text(tokeniser="char"),
        "five": Text(tokeniser="word"),
    }
    assert shared_vocabularies(texts) == {"three": "two", "five": "one"}
    assert Rating(inputs=texts | {"number_of_rooms": texts.pop("number")}).shared == {"three": "two", "five": "one"}


def test_shared_when_loaded(tmp_path):
    task, _ = fitted()
    task.save(tmp_path)
    other = Classification(inputs={"premise": Text(tokeniser="word"), "hypothesis": Text(tokeniser="word")})
    other.load(tmp_path)
    assert other.sizes() == task.sizes()
    assert other.inputs["premise"].tokeniser is other.inputs["hypothesis"].tokeniser


def test_inputs_are_padded_until_their_lengths_differ():
    ids, mask = torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool)
    batch = {"a": ids, "a_mask": mask, "b": torch.ones(2, 3, 5), "b_mask": mask, "c": ids[:, :1], "c_mask": mask[:, :1]}
    padded = tell_apart({**batch, "number": torch.ones(2)}, ["a", "b", "c", "number"])
    assert [tuple(padded[role].shape) for role in ("a", "b", "c", "number")] == [(2, 3), (2, 5, 5), (2, 7), (2,)]
    assert [tuple(padded[f"{role}_mask"].shape) for role in "abc"] == [(2, 3), (2, 5), (2, 7)]
    for role in "abc":
        assert int(padded[f"{role}_mask"].sum()) == batch[f"{role}_mask"].numel()
        assert int(padded[role].ne(0).sum()) == batch[role].numel()


def test_only_training_saves_the_padding():
    task, model = fitted()
    rows = [task.encode({role: text for role, text in pair.items() if role != "label"}) for pair in PAIRS[:2]]
    for_training = task.collate(rows, generator=torch.Generator())
    assert for_training["premise"].shape == for_training["hypothesis"].shape
    apart = task.collate(rows)
    assert apart["premise"].shape[1] != apart["hypothesis"].shape[1]
    torch.testing.assert_close(model(*task.given(apart)), model(*task.given(for_training)))


@pytest.mark.parametrize("pair", PAIRS, ids=["equal lengths", "equal lengths too", "different lengths"])
def test_each_attention_is_drawn_between_the_right_texts(pair):
    task, model = fitted()
    (item,) = task.explain(model, [pair])
    maps = {each.name: each for each in item.maps}
    premise, hypothesis = ([*pair[role].split(), "</s>"] for role in ("premise", "hypothesis"))
    assert (maps["across"].queries.pieces, maps["across"].keys.pieces) == (hypothesis, premise)
    assert maps["pool"].keys.pieces == hypothesis
    with record(model) as trace:
        model(*task.given(task.collate([task.encode(pair)], generator=torch.Generator())))
    torch.testing.assert_close(maps["across"].weights, trace["across"].weights[0])
    (answer,) = task.predict(model, [pair])
    assert answer.attention.keys == hypothesis
    torch.testing.assert_close(answer.weights, trace["pool"].weights[0, 0])


@pytest.mark.parametrize("role", ["premise", "hypothesis", None])
def test_evidence_belongs_to_the_input_that_it_names(role):
    """The model's single query attends to the hypothesis, so only marks in it are compared with its weights."""
    task, model = fitted(evidence=Evidence(unit="words", input=role))
    pair = {**PAIRS[2], "evidence": [(0, 1)]}
    (item,) = task.explain(model, [pair])
    marked = {axis.pieces[0] for each in item.maps for axis in (each.queries, each.keys) if axis.gold}
    assert marked == {pair[role or "premise"].split()[0]}
    (answer,) = task.predict(model, [pair])
    assert answer.attention.role == "hypothesis"
    assert ("auprc" in task.score([answer], [pair])) == (role == "hypothesis")
    with pytest.raises(ValueError, match=r"evidence.input='premises' is not an input. Did you mean 'premise'"):
        fitted(evidence=Evidence(input="premises"))


def test_a_model_of_one_text_is_refused_at_once():
    texts = {"premise": "text", "hypothesis": "text"}
    with pytest.raises(ConfigError, match="model pooling has no argument 'vocab_2': it reads one input, not 2"):
        Plan({"task": {"class": "classification", "inputs": texts}, "model": "pooling", "trainer": {"max_steps": 1}})


def test_pairs_from_a_file_to_a_page(tmp_path, call, monkeypatch):
    """Whether the second text says the same, from two columns of a CSV file."""
    monkeypatch.chdir(tmp_path)
    draws = random.Random(5)
    for name, count in (("pairs.csv", 400), ("test.csv", 60)):
        rows = ["premise,hypothesis,label"]
        for _ in range(count):
            thing, other = draws.sample(["cat", "dog", "hen", "cow"], 2)
            said = draws.choice([thing, other])
            rows.append(f"a {thing} sleeps,it is the {said},{'yes' if said == thing else 'no'}")
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    config = {
        "task": {
            "class": "classification",
            "inputs": {role: {"class": "text", "tokeniser": "word"} for role in ("premise", "hypothesis")},
        },
        "model": {"class": f"{__name__}.Comparing"},
        "trainer": {"max_epochs": 12, "learning_rate": 0.01, "batch_tokens": 512},
    }
    (tmp_path / "pairs.yaml").write_text(json.dumps(config))
    data = ("--data.train", "pairs.csv", "--data.header", "yes", "--output", "run")
    code, _, err = call("train", "pairs.yaml", *data)
    assert code == 0, err
    code, out, err = call("evaluate", "run", "--data", "test.csv", "--json", "--trust-classes")
    assert code == 0, err
    assert json.loads(out)["figures"]["accuracy"] > 95
    pair = json.dumps({"premise": "a hen sleeps", "hypothesis": "it is the hen"})
    code, out, err = call("predict", "run", "--trust-classes", given=f"{pair}\n")
    assert (code, out) == (0, "yes\n"), err
    code, out, err = call("explain", "run", "test.csv", "--format", "json", "--trust-classes")
    assert code == 0, err
    assert [each["name"] for each in json.loads(out)["items"][0]["maps"]] == ["across", "pool"]
