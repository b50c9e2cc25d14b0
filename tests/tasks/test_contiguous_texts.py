"""Texts that are parts of one: carried states, exact resuming, scores in order, frequency classes, caches."""

import math
import random
from functools import partial

import pytest
import torch

import saccade
from saccade.artifacts import ArtifactError
from saccade.data.contiguous import CARRIED
from saccade.data.special import BOS, EOS
from saccade.fields import Text
from saccade.models import LSTMLanguageModel, LSTMNLanguageModel, PointerSentinel
from saccade.tasks import LanguageModelling, reading_texts
from saccade.training import Checkpoints

WORDS = ["cat", "dog", "bird", "fish", "sees", "likes", "."]


def texts(count, seed):
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(1, 9))) for _ in range(count)]


def make(max_length=5):
    task = LanguageModelling(text=Text(tokeniser="word", max_length=max_length), contiguous=True)
    task.fit([{"text": text} for text in texts(40, 1)])
    torch.manual_seed(0)
    return task, task.build(LSTMLanguageModel, dim=11, num_layers=2).eval()


def log_probs(task, model, several, begin=BOS):
    """Of every token of all texts, read as one."""
    ids = [begin, *(token for text in several for token in task.rows({"text": text})[0]["text"])]
    tokens = torch.tensor([ids])
    found = model.head.logits(model(tokens, tokens > 0))[0].log_softmax(-1)
    return found[:-1].gather(1, tokens[0, 1:, None])[:, 0].detach()


def test_the_loss_over_all_pieces_is_that_of_the_whole_text() -> None:
    task, model = make()
    several = texts(6, 2)
    rows = task.in_order([row for text in several for row in task.rows({"text": text})], 9)
    assert rows.streams == 1
    carried, total, count = {}, 0.0, 0
    for row in rows:
        loss = task.loss(model, {**task.collate([row]), **{f"{CARRIED}{k}": v for k, v in carried.items()}})
        total, count, carried = total + float(loss.total.detach()), count + int(loss.count), loss.carried
    wanted = log_probs(task, model, several)
    assert count == len(wanted)
    assert total == pytest.approx(-float(wanted.sum()), rel=1e-5)


def test_scores_are_those_of_the_texts_in_order(monkeypatch) -> None:
    task, model = make()
    several = texts(7, 2)
    found = task.predict(model, several, score=True)
    wanted = log_probs(task, model, several)
    ends = torch.tensor([len(text.split()) + 1 for text in several]).cumsum(0).tolist()
    for answer, start, end in zip(found, [0, *ends], ends, strict=False):
        assert answer.value == pytest.approx(float(wanted[start:end].sum()), rel=1e-5)
        assert answer.details["tokens"] == end - start
    # As if the texts were long: now they start here and there, after the end of another text.
    monkeypatch.setattr(reading_texts, "LANE", 8)
    lanes = task.predict(model, several, score=True, batch_size=3)
    groups = reading_texts.in_lanes([len(text.split()) + 1 for text in several], 3)
    assert len(groups) == 3
    assert [number for group in groups for number in group] == list(range(7))
    apart = torch.cat([log_probs(task, model, [several[number] for number in group], EOS) for group in groups])
    assert sum(answer.value for answer in lanes) == pytest.approx(float(apart.sum()), rel=1e-5)


def test_workers_read_neighbours_in_order(monkeypatch) -> None:
    task, model = make()
    several = texts(7, 2)
    monkeypatch.setattr(reading_texts, "LANE", 8)
    batches = task.batches(model, several, 3)
    assert len(batches) == 3
    assert [number for batch in batches for number in batch] == list(range(7))


def test_a_cache_is_a_loop_over_recent_states() -> None:
    task, model = make()
    several = texts(4, 3)
    ids = [BOS, *(token for text in several for token in task.rows({"text": text})[0]["text"])]
    tokens = torch.tensor([ids])
    states = model(tokens, tokens > 0)[0].detach()
    chances = model.head.logits(states).softmax(-1).detach()
    size, weight, flatness = 6, 0.3, 2.0
    expected = 0.0
    for place, token in enumerate(ids[1:]):
        recent = range(max(0, place - size), place)
        own = chances[place, token]
        if len(recent):
            scores = torch.stack([torch.exp(flatness * states[place] @ states[i]) for i in recent])
            same = torch.tensor([ids[i + 1] == token for i in recent])
            own = (1 - weight) * own + weight * (scores * same).sum() / scores.sum()
        expected += math.log(own)
    options = {"cache_size": size, "cache_weight": weight, "cache_flatness": flatness}
    found = task.predict(model, several, score=True, **options)
    assert sum(answer.value for answer in found) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="how a causal model scores texts: set score"):
        task.predict(model, several, **options)
    with pytest.raises(ValueError, match="set cache_size as well"):
        task.predict(model, several, score=True, cache_weight=0.1)
    with pytest.raises(ValueError, match="cache_weight must be from 0 to less than 1"):
        task.predict(model, several, score=True, cache_size=3, cache_weight=1.5)


def test_a_cache_helps_with_words_that_come_again() -> None:
    task, model = make()
    (alone,), (cached,) = (
        task.predict(model, ["fish " * 50], score=True, **options) for options in ({}, {"cache_size": 20})
    )
    assert cached.value > alone.value + 10


def test_figures_by_frequency() -> None:
    task, model = make()
    several = ["cat cat zebra", "dog ."]
    answers = task.predict(model, several, score=True)
    (table,) = task.tables(answers, [{"text": text} for text in several])
    counts = task.counts
    assert sum(counts) == sum(len(text.split()) + 1 for text in texts(40, 1))
    assert table.rows["all"][0] == 7
    assert table.rows["all"][2] == 2  # cat, and the end
    assert table.rows["never"][0] == 1  # zebra
    assert table.rows["all"][1] == pytest.approx(math.exp(-sum(a.value for a in answers) / 7))
    assert sum(row[0] for name, row in table.rows.items() if name != "all") == 7


TRAINER = {"learning_rate": 0.01, "batch_tokens": 21, "checkpoint_every": 1, "validate_every": 50, "log_every": 100}


def test_resuming_in_the_middle_of_a_text_repeats_everything(tmp_path) -> None:
    data = {"train": [{"text": text} for text in texts(50, 5)], "valid": [{"text": text} for text in texts(9, 6)]}
    made = {
        "task": partial(
            LanguageModelling, text={"class": "text", "tokeniser": "word", "max_length": 7}, contiguous=True
        ),
        "model": partial(LSTMLanguageModel, dim=11, dropout=0.3, weight_drop=0.2),
        "data": data,
    }

    def train(folder, steps, **more):
        run = saccade.train(**more, trainer={**TRAINER, "max_steps": steps}, **folder)
        return run.model.state_dict()

    whole = train({"output": tmp_path / "whole"}, 19, **made)
    train({"output": tmp_path / "parts"}, 4, **made)
    saved = Checkpoints(tmp_path / "parts" / "checkpoints").load(4).carried
    assert {name: tuple(tensor.shape) for name, tensor in saved.items()} == dict.fromkeys(
        ("h0", "c0", "h1", "c1"), (3, 11)
    )
    assert saved["h1"].abs().max() > 0
    parts = train({"resume": tmp_path / "parts"}, 19, data=data)  # through the end of the first epoch
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    without = saccade.load(tmp_path / "parts")
    assert without.task.counts
    (tmp_path / "parts" / "task" / "counts.json").write_text("[1, -2]")
    (tmp_path / "parts" / "checksums.json").unlink()
    with pytest.raises(ArtifactError, match=r"counts\.json is damaged"):
        saccade.load(tmp_path / "parts")


def test_refuses_masks() -> None:
    with pytest.raises(ValueError, match="contiguous texts are read from left to right"):
        LanguageModelling(contiguous=True, causal=False)


def test_texts_apart_do_not_know_of_each_other() -> None:
    task, model = make()
    several = ["cat sees", "dog likes"]
    together, apart = (each.predict(model, several, score=True) for each in (task, task.apart()))
    alone = task.predict(model, several[1:], score=True)[0].value
    assert apart[1].value == pytest.approx(alone, rel=1e-5)
    assert abs(together[1].value - alone) > 1e-4
    assert task.contiguous


def test_explains_the_states_that_an_lstmn_read() -> None:
    task = LanguageModelling(text=Text(tokeniser="word", max_length=5), contiguous=True)
    task.fit([{"text": text} for text in texts(40, 1)])
    model = task.build(LSTMNLanguageModel, dim=6, window=3).eval()
    text = "cat sees dog . cat sees bird"
    (item,) = task.explain(model, [{"text": text}])
    (shown,) = item.maps
    weights = shown.weights[0]
    assert shown.keys.names == ["<s>", *text.split()]
    torch.testing.assert_close(weights.sum(-1)[1:], torch.ones(7))
    assert not weights.triu().any()
    assert not weights.tril(-4).any()  # beyond the window


def test_explains_what_each_word_pointed_at_and_how_far_the_pointer_was_trusted() -> None:
    task = LanguageModelling(text=Text(tokeniser="word", max_length=5), contiguous=True)
    task.fit([{"text": text} for text in texts(40, 1)])
    torch.manual_seed(0)
    model = task.build(PointerSentinel, dim=11, num_layers=1, window=4).eval()
    text = "cat sees dog . cat sees bird"
    (item,) = task.explain(model, [{"text": text}])
    (shown,) = item.maps
    assert shown.queries.names == [*text.split(), "</s>"]
    assert shown.keys.names == ["(vocabulary)", "<s>", *text.split()]
    torch.testing.assert_close(shown.weights.sum(-1), torch.ones(1, 8))
    ids = torch.tensor([task.encode({"text": text})["text"]])
    words, vocabulary = model.pointed(model(ids[:, :-1], ids[:, :-1] > 0))
    torch.testing.assert_close(shown.weights[0, :, 0], vocabulary[0].exp().detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(shown.weights[0, :, 1:], words[0].exp().detach(), rtol=1e-4, atol=1e-5)
    trusted = next(each for each in item.measures if each.name == "trust in the pointer")
    assert trusted.value == pytest.approx(1.0 - float(vocabulary.detach().exp().mean()), abs=1e-4)
