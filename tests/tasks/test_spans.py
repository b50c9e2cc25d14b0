"""Answers that stand in a text: where they are among tokens, how they are chosen, and that a small model learns."""

import random

import pytest
import torch
from torch import nn

import saccade
from saccade.data.errors import DataError
from saccade.fields import WordPieces
from saccade.tasks import Spans

QUESTION, CONTEXT = "Who jumped?", "The lowest fox jumped, and the fox  slept."


def part(*texts, starts=None):
    return {"texts": list(texts), "starts": list(starts or [-1] * len(texts))}


def fitted(**arguments):
    task = Spans(text=WordPieces(vocab_size=71, **{"max_length": 37, **arguments}))
    task.fit([{"text": [QUESTION, CONTEXT], "span": part("fox")}] * 3)
    return task


def shown(task, example):
    """The pieces that an encoded answer points to."""
    row = task.encode(example)
    first, last = row["span"]
    pieces = task.text.tokeniser.pieces(row["text"]["ids"])
    return task.text.tokeniser.join(pieces[first : last + 1])


@pytest.mark.parametrize("value", [[QUESTION, CONTEXT], CONTEXT])
def test_answers_are_found_among_tokens(value):
    task = fitted()
    for words in ("fox", "The lowest fox", "jumped,", "slept.", "lowest"):
        found = shown(task, {"text": value, "span": part(words)})
        assert found.replace(" ", "") == words.lower().replace(" ", "")
    first = task.encode({"text": value, "span": part("fox")})["span"]
    second = task.encode({"text": value, "span": part("fox", starts=[CONTEXT.rfind("fox")])})["span"]
    assert second[0] > first[0]
    assert task.encode({"text": value, "span": part()})["span"] == [0, 0]
    assert "span" not in task.encode({"text": value})


def test_answers_that_are_not_there_are_refused():
    task = fitted()
    with pytest.raises(DataError, match="'wolf' does not occur in its text"):
        task.encode({"text": CONTEXT, "span": part("wolf")})
    with pytest.raises(DataError, match="does not occur"):
        task.encode({"text": CONTEXT, "span": part("fox", starts=[1])})


def test_answers_beyond_what_is_read_are_left_out_of_training():
    task = fitted(max_length=7)
    row = task.encode({"text": CONTEXT, "span": part("slept")})
    assert "not read" in task.left_out(row)
    assert task.left_out(task.encode({"text": CONTEXT, "span": part("The")})) is None
    batch = task.collate([row])
    assert bool(task.loss(Pointing(task, 0, 0), batch).total.isfinite())


class Pointing(nn.Module):
    """Points to two tokens, and more strongly to some that cannot be answers."""

    def __init__(self, task, first, last):
        super().__init__()
        self.first, self.last = first, last

    def forward(self, tokens, mask, segments):
        logits = torch.zeros(*tokens.shape, 2)
        logits[:, self.first, 0] = logits[:, self.last, 1] = 5.0
        logits[:, 1] = 9.0  # the question
        return logits


def test_the_best_span_is_the_answer():
    task = fitted()
    example = {"text": [QUESTION, CONTEXT], "span": part("The lowest fox")}
    first, last = task.encode(example)["span"]
    (answer,) = task.predict(Pointing(task, first, last), [example])
    assert answer.value == "The lowest fox"
    assert CONTEXT[answer.details["start"] : answer.details["end"]] == answer.value
    figures = task.score([answer], [example])
    assert figures["exact_match"].value == figures["f1"].value == 100.0
    (backwards,) = task.predict(Pointing(task, last, first), [example])
    assert backwards.value in CONTEXT  # never an end before its start
    (short,) = task.predict(Pointing(task, first, last), [example], max_answer=1)
    assert len(task.text.tokeniser.encode(short.value)) <= 1
    (nothing,) = task.predict(Pointing(task, 0, 0), [example])
    assert nothing.value == ""
    assert task.score([nothing], [{**example, "span": part()}])["exact_match"].value == 100.0


def questions(count, seed=1):
    """Which animal has a colour: the words before it say so."""
    chance = random.Random(seed)
    animals, colours = ["fox", "dog", "cat", "owl"], ["red", "blue", "green"]
    found = []
    for _ in range(count):
        chosen, kinds = chance.sample(colours, 2), chance.choices(animals, k=2)
        context = " and ".join(f"a {colour} {kind}" for colour, kind in zip(chosen, kinds, strict=True))
        which = chance.randrange(2)
        start = context.rfind(kinds[1]) if which else 2 + len(chosen[0]) + 1
        found.append({"text": [f"which is {chosen[which]}", context], "span": {"text": kinds[which], "start": start}})
    return found


def trained(output, steps):
    return saccade.train(
        "classification/bert-spans",
        data={"train": questions(400), "valid": questions(50, seed=2)},
        output=output,
        model={"dim": 32, "num_layers": 2, "max_length": 24, "dropout": 0.0},
        overrides={
            "task.text.vocab_size": 60,
            "task.text.max_length": 24,
            "trainer.max_epochs": None,
            "trainer.max_steps": steps,
            "trainer.batch_tokens": 800,
            "trainer.learning_rate": 3e-3,
            "trainer.validate_every": steps // 2,
        },
    )


def test_it_trains_is_loaded_and_explained(tmp_path):
    run = saccade.load(trained(tmp_path / "run", 4).folder)
    (answer,) = run.predict([["which is red", "a red fox"]])
    assert answer.value in "a red fox"
    assert set(run.evaluate(questions(7)).figures) == {"exact_match", "f1"}
    (item,) = run.explain([["which is red", "a red fox"]])
    assert len(item.maps) == 2


@pytest.mark.slow
def test_a_small_model_learns(tmp_path):
    assert trained(tmp_path / "run", 1200).result.scores["exact_match"] > 90


def test_mistakes_are_named():
    for arguments, message in (
        ({"text": "text"}, "must be the field wordpieces"),
        ({"metrics": ["accuracy"]}, "Unknown metric"),
    ):
        with pytest.raises(ValueError, match=message):
            Spans(**arguments)
    with pytest.raises(ValueError, match="max_answer"):
        fitted().predict(nn.Identity(), ["a"], max_answer=0)
