"""Pre-training: what a batch holds, its loss, and that a small model learns."""

import json
import random

import pytest
import torch
from torch.nn import functional as F

import saccade
from saccade.data.corpus import Corpus
from saccade.fields import WordPieces
from saccade.tasks import Pretraining

WORDS = ["the", "low", "new", "tower", "a", "lower", "newest", "and"]


def documents(count, seed=1):
    """Each document speaks of one colour only, so that what follows can be known."""
    chance = random.Random(seed)

    def sentence(colour):
        return " ".join([colour, *chance.choices(WORDS, k=chance.randint(2, 5)), colour])

    colours = ["red", "blue", "green", "black"]
    return [
        "\n".join(sentence(colour) for _ in range(chance.randint(2, 6)))
        for colour in (chance.choice(colours) for _ in range(count))
    ]


def fitted(**arguments):
    task = Pretraining(text=WordPieces(vocab_size=67, max_length=31), **arguments)
    task.fit([{"text": text} for text in documents(40)])
    return task


def model_of(task):
    torch.manual_seed(3)
    model = saccade.models.create(
        "bert", **task.sizes(), dim=14, num_heads=2, num_layers=1, feed_forward_dim=19, max_length=37
    )
    return model.eval()


def collated(task, count=40, generator=None):
    rows = [row for text in documents(count, seed=2) for row in task.rows({"text": text})]
    return rows, task.collate(rows, generator=generator)


def test_a_batch_holds_pairs_with_hidden_tokens():
    task = fitted()
    rows, batch = collated(task, generator=torch.Generator().manual_seed(5))
    tokeniser = task.text.tokeniser
    mask, wanted, hidden = batch["text_mask"], batch["wanted"], batch["hidden"]
    assert wanted.shape[1] <= 31
    cls, sep, pad = (tokeniser.special(name) for name in ("[CLS]", "[SEP]", "[PAD]"))
    assert (wanted[:, 0] == cls).all()
    assert ((wanted == sep).sum(1) == 2).all()
    assert (wanted[~mask] == pad).all()
    assert not hidden[(wanted == cls) | (wanted == sep) | ~mask].any()
    counts = mask.sum(1) - 3
    assert torch.equal(hidden.sum(1), (0.15 * counts).round().clamp(1, 20).long())
    assert torch.equal(batch["text"][~hidden], wanted[~hidden])
    segments = batch["text_segments"]
    for row in range(len(rows)):
        first = int((wanted[row] == sep).nonzero()[0])
        assert segments[row].tolist() == [
            int(place > first and bool(mask[row, place])) for place in range(len(mask[0]))
        ]
    assert all(int(n) <= size for n, row in zip(mask.sum(1), rows, strict=True) for size in task.size(row))
    assert 0.3 < batch["follows"].float().mean() < 0.7


def test_validation_sees_the_same_every_time_and_training_does_not():
    task = fitted()
    first, second = collated(task)[1], collated(task)[1]
    assert all(torch.equal(first[name], second[name]) for name in first)
    drawn = [collated(task, generator=torch.Generator().manual_seed(seed))[1] for seed in (1, 2, 1)]
    assert torch.equal(drawn[0]["text"], drawn[2]["text"])
    assert not torch.equal(drawn[0]["follows"], drawn[1]["follows"])


def test_the_loss_is_the_sum_of_two_means():
    task = fitted()
    model = model_of(task)
    _, batch = collated(task, generator=torch.Generator().manual_seed(5))
    loss = task.loss(model, batch)
    states, pooled = model.read(batch["text"], batch["text_mask"], batch["text_segments"])
    masked = F.cross_entropy(model.masked(states)[batch["hidden"]], batch["wanted"][batch["hidden"]])
    following = F.cross_entropy(model.next_sentence(pooled), batch["follows"])
    torch.testing.assert_close(loss.total / loss.count, masked + following)
    assert int(loss.count) == len(batch["follows"])


def test_nothing_hidden_and_nothing_that_follows_give_zero():
    task = fitted(mask_share=0.0)
    model = model_of(task).train()
    rows = task.rows({"text": "the low tower"})
    batch = task.collate(rows, generator=torch.Generator())
    assert not batch["hidden"].any()
    assert batch["follows"].tolist() == [-1]
    loss = task.loss(model, batch)
    loss.total.backward()
    assert float(loss.total.detach()) == 0.0
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in model.parameters())


def test_figures_are_those_of_all_tokens():
    task = fitted()
    model = model_of(task)
    examples = [{"text": text} for text in documents(7, seed=9)]
    answers = task.predict(model, examples, score=True)
    figures = task.score(answers, examples)
    details = [answer.details for answer in answers]
    tokens, right = (sum(each[name] for each in details) for name in ("tokens", "right"))
    assert figures["masked_accuracy"].value == pytest.approx(100 * right / tokens)
    assert figures["masked_perplexity"].value > 1
    assert 0 <= figures["next_accuracy"].value <= 100
    json.dumps(details)
    assert all(task.evaluate(model, examples)[name] == figure.value for name, figure in figures.items())


def test_blanks_are_filled_in():
    task = fitted()
    model = model_of(task)
    answers = task.predict(model, ["the [MASK] tower", "[MASK] and [MASK]."])
    assert answers[0].text.startswith("the ")
    assert answers[0].text.endswith(" tower")
    assert [len(answer.details["blanks"]) for answer in answers] == [1, 2]
    assert answers[1].text.endswith(".")
    with pytest.raises(ValueError, match=r"has no \[MASK\] to fill in"):
        task.predict(model, ["the tower"])
    (long,) = task.predict(model, ["[MASK] " + "tower " * 40 + "[MASK]"])  # the second is not read
    assert len(long.details["blanks"]) == 1
    assert not long.text.startswith("[MASK]")
    assert long.text.endswith("[MASK]")
    (item,) = task.explain(model, [{"text": "the [MASK] tower"}])
    assert len(item.maps) == 1


def test_documents_are_paragraphs_of_text_files(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("one\ntwo\n\n\n three\n \nfour", encoding="utf-8")
    read = Corpus().read(str(path), fitted().fields)
    assert [example["text"] for example in read] == ["one\ntwo", " three", "four"]
    assert [line for _, line, _ in read.located()] == [1, 5, 7]


def trained(output, steps):
    """Each document repeats one word, so that both guesses can be made."""
    chance = random.Random(3)
    words = ["red", "blue", "green", "black", "white", "grey", "pink"]
    texts = ["\n".join([" ".join([word] * 4)] * 3) for word in chance.choices(words, k=330)]
    examples = [{"text": text} for text in texts]
    return saccade.train(
        "language/bert",
        data={"train": examples[30:], "valid": examples[:30]},
        output=output,
        model={"dim": 32, "num_layers": 1, "max_length": 20},
        overrides={
            "task.text.vocab_size": 60,
            "task.text.max_length": 20,
            "trainer.max_minutes": None,
            "trainer.max_steps": steps,
            "trainer.batch_tokens": 1000,
            "trainer.learning_rate": 5e-3,
            "trainer.validate_every": steps // 2,
        },
    )


def test_it_trains_and_is_loaded(tmp_path):
    run = saccade.load(trained(tmp_path / "run", 4).folder)
    (answer,) = run.predict(["red red [MASK] red"])
    assert answer.value.split()[0] == "red"
    evaluated = run.evaluate([{"text": "red red\nred"}, {"text": "blue\nblue"}])
    assert set(evaluated.figures) == {"masked_accuracy", "masked_perplexity", "next_accuracy"}


@pytest.mark.slow
def test_a_small_model_learns_both(tmp_path):
    run = trained(tmp_path / "run", 600)
    assert run.result.scores["next_accuracy"] > 85  # 1 in 7 others has the same word
    assert run.result.scores["masked_accuracy"] > 80
    assert run.predict(["red red [MASK] red"])[0].value == "red red red red"


def test_mistakes_are_named():
    for arguments, message in (
        ({"text": "text"}, "must be the field wordpieces"),
        ({"mask_share": 1.0}, "mask_share"),
        ({"short_share": -0.1}, "short_share"),
        ({"max_predictions": 0}, "max_predictions"),
        ({"metrics": ["accuracy"]}, "Unknown metric"),
    ):
        with pytest.raises(ValueError, match=message):
            Pretraining(**arguments)
