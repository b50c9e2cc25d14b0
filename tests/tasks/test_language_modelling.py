"""Language modelling, causal and masked: rows, losses, scores, continuations, and the whole way on the command line."""

import json
import math
import random
from functools import partial

import pytest
import torch

import saccade
from saccade.configuration import ConfigError
from saccade.data.special import BOS, EOS
from saccade.fields import Text
from saccade.models import TransformerLanguageModel
from saccade.runs.plan import Plan
from saccade.tasks import LanguageModelling

SUBJECTS, VERBS = ["cat", "dog", "bird"], ["sees", "likes"]
SMALL = {"dim": 16, "num_heads": 2, "num_layers": 2, "feed_forward_dim": 32, "dropout": 0.0}


def texts(count, seed):
    """`cat sees cat .`: the object repeats the subject, which takes attention."""
    drawn = random.Random(seed)
    pairs = [(drawn.choice(SUBJECTS), drawn.choice(VERBS)) for _ in range(count)]
    return [f"{subject} {verb} {subject} ." for subject, verb in pairs]


def make(causal=True, max_length=256, model=None):
    task = LanguageModelling(text=Text(tokeniser="word", max_length=max_length), causal=causal)
    task.fit([{"text": text} for text in texts(40, 1)])
    torch.manual_seed(0)
    return task, task.build(TransformerLanguageModel, **SMALL, **(model or {})).eval()


@torch.no_grad()
def log_probs(model, ids):
    tokens = torch.tensor([ids])
    return model.head.logits(model(tokens, torch.ones_like(tokens, dtype=torch.bool)))[0].log_softmax(-1)


def test_long_texts_are_cut_and_every_token_is_predicted_once() -> None:
    task, _ = make(max_length=3)
    text = "cat sees cat . dog likes bird"
    ids = [BOS, *task.text.tokeniser.encode(text), EOS]
    rows = [row["text"] for row in task.rows({"text": text})]
    assert [len(row) for row in rows] == [4, 4, 3]
    assert [token for row in rows for token in row[1:]] == ids[1:]
    assert [row[0] for row in rows] == [ids[0], ids[3], ids[6]]
    assert task.left_out(task.encode({"text": text})) is None


def test_the_causal_loss_is_a_loop_over_next_tokens() -> None:
    task, model = make()
    examples = [{"text": text} for text in ("cat sees cat .", "dog", "bird likes dog . dog")]
    rows = [task.encode(example) for example in examples]
    total = count = 0
    for row in rows:
        ids = row["text"]
        for place in range(1, len(ids)):
            total -= float(log_probs(model, ids[:place])[-1, ids[place]])
            count += 1
    loss = task.loss(model, task.collate(rows))
    assert float(loss.total.detach()) == pytest.approx(total, rel=1e-5)
    assert int(loss.count) == count == 5 + 2 + 6


def test_the_masked_loss_is_a_loop_over_hidden_tokens() -> None:
    task, model = make(causal=False)
    rows = [task.encode({"text": text}) for text in ("cat sees cat .", "dog", "bird likes dog . dog cat bird .")]
    batch = task.collate(rows, generator=torch.Generator().manual_seed(4))
    total = 0.0
    for row, given, hidden in zip(rows, batch["given"].tolist(), batch["hidden"].tolist(), strict=True):
        found = log_probs(model, given[: len(row["text"])])
        total -= sum(float(found[p, t]) for p, t in enumerate(row["text"]) if hidden[p])
    loss = task.loss(model, batch)
    assert int(loss.count) == int(batch["hidden"].sum()) > 0
    assert float(loss.total.detach()) == pytest.approx(total, rel=1e-5)
    assert task.collate(rows)["hidden"].sum(1).tolist() == [1, 1, 1]  # validation hides something in every text


@pytest.mark.parametrize("causal", [True, False])
def test_a_batch_without_anything_to_guess_has_no_loss(causal) -> None:
    task, model = make(causal=causal)
    batch = task.collate([{"text": [BOS]}] if causal else [{"text": [BOS, EOS]}])
    loss = task.loss(model, batch)
    loss.total.backward()
    assert (float(loss.total.detach()), int(loss.count)) == (0.0, 0)


@pytest.mark.parametrize("batch_size", [1, 64])
def test_the_score_of_a_text_is_its_log_probability(batch_size) -> None:
    task, model = make(max_length=3)
    given = ["cat sees cat .", "dog", "bird likes dog . dog cat bird ."]
    for text, answer in zip(given, task.predict(model, given, score=True, batch_size=batch_size), strict=True):
        expected = 0.0
        for row in task.rows({"text": text}):
            found = log_probs(model, row["text"][:-1])
            expected += sum(float(found[place, token]) for place, token in enumerate(row["text"][1:]))
        assert answer.value == pytest.approx(expected, rel=1e-5)
        words = len(text.split()) + 1
        assert answer.details["tokens"] == answer.details["words"] == words
        assert answer.details["bytes"] == len(text) + 1
        assert answer.score == pytest.approx(expected / words, rel=1e-5)


def test_the_score_of_a_masked_model_masks_every_token_once() -> None:
    task, model = make(causal=False)
    text = "bird likes dog . dog cat bird sees ."
    (answer,) = task.predict(model, [text], score=True)
    ids = task.encode({"text": text})["text"]
    expected = 0.0
    for first in range(1, task.every + 1):
        hidden = [place for place in range(1, len(ids) - 1) if (place - first) % task.every == 0]
        if hidden:
            found = log_probs(model, [task.mask_id if place in hidden else token for place, token in enumerate(ids)])
            expected += sum(float(found[place, ids[place]]) for place in hidden)
    assert answer.value == pytest.approx(expected, rel=1e-5)
    assert answer.details["tokens"] == 9


def greedily(task, model, text, most):
    ids = [BOS, *task.text.tokeniser.encode(text)]
    total = 0.0
    for _ in range(most):
        found = log_probs(model, ids)[-1]
        found[[0, 1]] = -math.inf
        token = int(found.argmax())
        total += float(found[token])
        if token == EOS:
            break
        ids.append(token)
    return ids[1:], total


def test_a_greedy_continuation_takes_the_likeliest_token_after_each_prompt() -> None:
    task, model = make()
    prompts = ["cat", "bird likes dog . dog", ""]
    answers = task.predict(model, prompts, max_length=6)
    for prompt, answer in zip(prompts, answers, strict=True):
        tokens, total = greedily(task, model, prompt, 6)
        assert answer.tokens == tokens
        assert answer.log_prob == pytest.approx(total, abs=1e-4)
        assert answer.score == answer.log_prob
        assert answer.text == task.text.tokeniser.decode(tokens)


def test_unknown_words_of_a_prompt_keep_their_spelling() -> None:
    task, model = make()
    assert task.predict(model, ["zebra sees"], max_length=3, min_length=1)[0].text.startswith("zebra sees ")


def test_options_of_continuations() -> None:
    task, model = make()
    prompts = ["cat sees", "dog"]
    drawn = [task.predict(model, prompts, sample=True, seed=7, nbest=3, max_length=5) for _ in range(2)]
    assert [a.text for a in drawn[0]] == [a.text for a in drawn[1]]
    assert [len(a.alternatives) for a in drawn[0]] == [3, 3]
    for answer in task.predict(model, prompts, beam=4, nbest=4, length_penalty=0.6, max_length=5):
        scores = [each.score for each in answer.alternatives]
        assert scores == sorted(scores, reverse=True)
    for prompt, answer in zip(prompts, task.predict(model, prompts, min_length=4, max_length=4), strict=True):
        assert len(answer.tokens) == len(prompt.split()) + 4
    with pytest.raises(ValueError, match="score measures a text, but beam"):
        task.predict(model, prompts, score=True, beam=3)


def test_a_prompt_beyond_learned_positions_is_cut_at_its_beginning() -> None:
    task, model = make(max_length=10, model={"positions": "learned", "max_length": 10})
    (answer,) = task.predict(model, ["dog . " * 8 + "cat sees"], max_length=50)
    assert 5 < len(answer.tokens) <= 9 or answer.finished
    assert answer.details == {"unread_tokens": 13}
    assert "1 of 1 texts are too long" in task.remarks([answer])[0]


def test_blanks_are_filled() -> None:
    task, model = make(causal=False)
    (answer,) = task.predict(model, ["cat [MASK] cat [MASK]"])
    ids = task.text.tokeniser.encode("cat sees cat .")
    found = log_probs(model, [BOS, ids[0], task.mask_id, ids[2], task.mask_id, EOS])[:, 4 : task.mask_id]
    best = [int(found[place].argmax()) + 4 for place in (2, 4)]
    assert answer.text == task.text.tokeniser.decode([ids[0], best[0], ids[2], best[1]])
    assert len(answer.details["blanks"]) == 2
    with pytest.raises(ValueError, match=r"has no \[MASK\] to fill in"):
        task.predict(model, ["cat sees"])
    with pytest.raises(ValueError, match="beam changes how texts continue"):
        task.predict(model, ["cat [MASK]"], beam=3)


def test_blanks_are_read_as_masks_and_never_asked_for() -> None:
    task, model = make(causal=False)
    (answer,) = task.predict(model, ["cat [MASK] cat ."], score=True)
    assert answer.details["tokens"] == 3
    (item,) = task.explain(model, [{"text": "cat [MASK] cat ."}])
    assert item.maps[0].keys.names == ["<s>", "cat", "[MASK]", "cat", ".", "</s>"]
    assert task.unknown(["cat [MASK] zebra"]) == {0: ["zebra"]}


def test_explains_the_text_as_it_is_read() -> None:
    task, model = make(max_length=3)
    (item,) = task.explain(model, [{"text": "cat sees cat ."}], keep="*.0.*")
    (shown,) = item.maps
    assert shown.keys.names == ["<s>", "cat", "sees"]  # of the first piece
    above = torch.ones(3, 3).triu(1).bool()
    assert (shown.weights[:, above] == 0).all()
    assert torch.allclose(shown.weights.sum(-1), torch.ones(2, 3))


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="mask_share must be between 0 and 1"):
        LanguageModelling(mask_share=1.5)
    with pytest.raises(ValueError, match=r"Unknown metric 'perplexty'.*perplexity"):
        LanguageModelling(metrics=["perplexty"])
    with pytest.raises(ValueError, match="must be the field text"):
        LanguageModelling(text="number")
    task, model = make(causal=False, max_length=10, model={"positions": "learned", "max_length": 10})
    with pytest.raises(ValueError, match=r"10 learned positions are too few .* model.max_length to 11 or more"):
        task.check(model)


def test_the_task_says_whether_its_model_is_causal() -> None:
    config = {"task": "language_modelling", "model": "transformer_lm", "trainer": {"max_steps": 1}}
    assert Plan(config).outline().causal
    assert not Plan({**config, "task": {"class": "language_modelling", "causal": False}}).outline().causal
    with pytest.raises(ConfigError, match=r"model\.causal follows from the task and the data"):
        Plan({**config, "model": {"class": "transformer_lm", "causal": False}})
    with pytest.raises(
        ConfigError, match="rnnsearch has no argument 'causal': models of this task take vocab and causal"
    ):
        Plan({**config, "model": "rnnsearch"})


TRAINER = {"learning_rate": 0.01, "schedule": "constant", "batch_tokens": 512, "metric": "loss", "log_every": 100}


@pytest.mark.parametrize("causal", [True, False])
def test_learns_a_small_language(causal, tmp_path) -> None:
    run = saccade.train(
        task=partial(LanguageModelling, text={"class": "text", "tokeniser": "word"}, causal=causal),
        model=partial(TransformerLanguageModel, **SMALL),
        data={"train": [{"text": text} for text in texts(1000, 5)], "held_out": 0.0},
        trainer={**TRAINER, "max_steps": 80 if causal else 150},
        output=tmp_path / "run",
    )
    figures = run.evaluate([{"text": text} for text in texts(60, 6)]).figures
    if causal:  # of five tokens two are free, one of three and one of two: 6 ^ (1 / 5) at best
        assert 6**0.2 - 0.05 < figures["perplexity"].value < 6**0.2 + 0.1
        (answer,) = run.predict(["bird likes"])
        assert answer.text == "bird likes bird ."
        assert answer.finished
    else:  # only the verb is open
        assert figures["perplexity"].value < 2**0.25 + 0.2
        assert run.predict(["[MASK] sees dog ."])[0].text == "dog sees dog ."


def test_resuming_repeats_the_masks(tmp_path) -> None:
    def train(folder, steps, **more):
        return saccade.train(
            **more, trainer={**TRAINER, "max_steps": steps, "checkpoint_every": 3, "validate_examples": 0}, **folder
        ).model.state_dict()

    made = {
        "task": partial(LanguageModelling, text={"class": "text", "tokeniser": "word"}, causal=False),
        "model": partial(TransformerLanguageModel, **SMALL),
        "data": {"train": [{"text": text} for text in texts(200, 5)], "held_out": 0.0},
    }
    whole = train({"output": tmp_path / "whole"}, 6, **made)
    train({"output": tmp_path / "parts"}, 3, **made)
    parts = train({"resume": tmp_path / "parts"}, 6, data=made["data"])
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.parametrize("causal", ["true", "false"])
def test_from_a_text_file_to_continuations(causal, tmp_path, call, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("\n".join([*texts(150, 8), "", " ".join(texts(10, 9))]) + "\n")
    (tmp_path / "test.txt").write_text("\n".join(texts(10, 10)) + "\n")
    sizes = [word for name, value in SMALL.items() for word in (f"--model.{name}", str(value))]
    trainer = ("--trainer.max_epochs", "2", "--trainer.batch_tokens", "512", "--trainer.validate_examples", "5")
    task = ("--task.text.tokeniser", "word", "--task.text.max_length", "8", "--task.causal", causal)
    data = ("--data.train", "book.txt", "--data.valid", "test.txt", "--output", "run")
    code, _, err = call("train", "language/transformer", *data, *sizes, *trainer, *task)
    assert code == 0, err
    assert "skipped 1 bad row." in err
    assert "examples that make" in err
    code, out, err = call("evaluate", "run", "--data", "test.txt", "--json")
    assert code == 0, err
    figures = json.loads(out)["figures"]
    read = [answer.details for answer in saccade.load("run").predict(texts(10, 10), score=True)]
    nats = -sum(each["log_prob"] for each in read)
    assert figures["perplexity"] == pytest.approx(math.exp(nats / sum(each["tokens"] for each in read)))
    assert figures["bits_per_byte"] == pytest.approx(nats / math.log(2) / sum(each["bytes"] for each in read))
    if causal == "true":
        code, out, _ = call("predict", "run", "--sample", "--seed", "1", "--max-length", "4", given="cat sees\ndog\n")
        assert [line.split()[0] for line in out.splitlines()] == ["cat", "dog"]
    else:
        code, out, err = call("predict", "run", given="cat [MASK] cat .\n")
        assert len(out.split()) == 4
        assert "never seen" not in err
    assert code == 0
    code, out, _ = call("predict", "run", "--score", given="cat sees cat .\n")
    assert (code, float(out) < 0.0) == (0, True)
    code, out, _ = call("explain", "run", "--input", "cat sees cat .", "--format", "json")
    assert code == 0
    maps = json.loads(out)["items"][0]["maps"]
    assert len(maps) == 2
    code, _, err = call("explain", "run", "--input", "cat", "--target", "dog")
    assert code != 0
    assert "no targets" in err
