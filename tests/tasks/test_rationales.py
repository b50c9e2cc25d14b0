"""Rationales in classification and rating: the objective, answers, figures, explanations, and what people marked."""

import json
import random

import pytest
import torch

import saccade
from saccade.cli import main
from saccade.data.corpus import Corpus
from saccade.data.errors import BadRow
from saccade.evaluation.rationales import auprc, iou_f1, token_f1
from saccade.fields import Evidence, Label, Text
from saccade.models import AttentionPooling, Costs, Rationale
from saccade.tasks import Classification, Rating
from saccade.training import read_metrics, seed_everything

EXAMPLES = [
    {"text": "the plot is dull and far too long", "label": "bad", "evidence": [(2, 4), (5, 8)]},
    {"text": "a wonderful film", "label": "good", "evidence": [(1, 2)]},
    {"text": "see it", "label": "good", "evidence": []},
]
SMALL = {"embedding_dim": 5, "hidden_dim": 7, "dropout": 0.0}


def made(kind=Rationale, seed=3, **arguments):
    task = Classification(label=Label(), evidence=Evidence(unit="words"))
    task.fit(EXAMPLES)
    seed_everything(seed)
    model = task.build(kind, **SMALL, **arguments)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return task, model.eval()


def batch_of(task, examples=EXAMPLES):
    return task.collate([task.encode(example) for example in examples])


class Penalised(torch.nn.Module):
    """Costs its own weight; the log shows how long inputs are."""

    def __init__(self, *, vocab: int, classes: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(vocab, classes)

    def forward(self, tokens, mask):
        return (self.table(tokens) * mask.unsqueeze(2)).sum(1)

    def costs(self, tokens, mask, *, losses):
        logits = self(tokens, mask)
        penalty = 0.5 * logits.square().sum(1)
        return Costs(logits, losses(logits) + penalty, penalty, {"length": mask.sum(1)})


@pytest.mark.parametrize("training", [False, True])
def test_an_objective_of_the_models_own(training):
    task = Classification(label=Label(), label_smoothing=0.3)
    task.fit(EXAMPLES)
    model = task.build(Penalised).train(training)
    batch = batch_of(task)
    logits = model(batch["text"], batch["text_mask"])
    smoothing = 0.3 if training else 0.0
    data = torch.nn.functional.cross_entropy(logits, batch["label"], label_smoothing=smoothing, reduction="sum")
    plain = torch.nn.functional.cross_entropy(logits, batch["label"], reduction="sum")
    penalty = 0.5 * logits.square().sum()
    loss = task.loss(model, batch)
    torch.testing.assert_close(loss.total, data + penalty)
    torch.testing.assert_close(loss.parts["loss"], (plain + penalty).detach())
    assert int(loss.parts["length"]) == sum(len(example["text"].split()) + 1 for example in EXAMPLES)
    assert int(loss.count) == 3


@pytest.mark.parametrize("kind", ["squared", "absolute", "huber", "pairwise"])
def test_an_objective_of_the_models_own_for_numbers(kind):
    examples = [{"text": example["text"], "number": n} for n, example in zip((1.5, -2.0, 4.0), EXAMPLES, strict=True)]
    task = Rating(loss=kind)
    task.fit(examples)
    model = task.build(Penalised)
    batch = batch_of(task, examples)
    found, penalty = task.loss(model, batch).total, 0.5 * model(batch["text"], batch["text_mask"]).square().sum()
    del model.__class__.costs
    try:
        assert found.item() == pytest.approx((task.loss(model, batch).total + penalty).item(), rel=1e-5)
    finally:
        Penalised.costs = _costs


_costs = Penalised.costs


def test_the_log_holds_what_is_kept_and_what_it_costs():
    task, model = made(sparsity=0.25, coherence=0.5)
    batch = batch_of(task)
    loss = task.loss(model, batch)
    picked = [answer.attention.picked for answer in task.predict(model, EXAMPLES)]
    lengths = [len(example["text"].split()) + 1 for example in EXAMPLES]
    assert loss.parts["sparsity"].item() == pytest.approx(0.25 * sum(map(len, picked)))
    assert loss.parts["kept"].item() == pytest.approx(
        sum(len(own) / length for own, length in zip(picked, lengths, strict=True))
    )
    changes = sum(
        (n in own) != (n + 1 in own) for own, size in zip(picked, lengths, strict=True) for n in range(size - 1)
    )
    assert loss.parts["coherence"].item() == pytest.approx(0.5 * changes)
    logits = task.logits(model, batch)
    data = torch.nn.functional.cross_entropy(logits, batch["label"], reduction="sum").item()
    costs = loss.parts["sparsity"].item() + loss.parts["coherence"].item()
    assert loss.total.item() == pytest.approx(data + costs, rel=1e-5)


def test_answers_say_which_words_were_read():
    task, model = made()
    for example, answer in zip(EXAMPLES, task.predict(model, EXAMPLES), strict=True):
        words = example["text"].split()
        picked = [n for n in answer.attention.picked if n < len(words)]
        assert picked == [n for n in range(len(words)) if answer.weights[0, n] >= 0.5]
        assert " ".join(answer.details["rationale"]).split() == [words[n] for n in picked]
        runs = sum(n - 1 not in picked for n in picked)
        assert len(answer.details["rationale"]) == runs
        assert task.as_json(example, answer)["rationale"] == answer.details["rationale"]
        # Nothing else was read: the other words can be anything.
        (alone,) = task.predict(model, [" ".join(words)])
        assert alone.details["rationale"] == answer.details["rationale"]


def test_models_that_read_everything_pick_nothing():
    task, model = made(AttentionPooling)
    (answer,) = task.predict(model, EXAMPLES[:1])
    assert answer.attention.picked is None
    assert "rationale" not in answer.details


def test_figures_of_picks_against_what_people_marked():
    task, model = made()
    answers = task.predict(model, EXAMPLES)
    figures = {name: figure.value for name, figure in task.score(answers, EXAMPLES).items()}
    lengths = [len(example["text"].split()) for example in EXAMPLES]
    picks = [[n in a.attention.picked for n in range(size)] for a, size in zip(answers, lengths, strict=True)]
    gold = [example["evidence"] for example in EXAMPLES]
    assert figures["kept"] == pytest.approx(100 * sum(sum(p) / len(p) for p in picks) / 3)
    assert (figures["token_precision"], figures["token_recall"], figures["token_f1"]) == token_f1(picks, gold)
    assert figures["iou_f1"] == iou_f1(picks, gold).f1
    weights = [answer.weights[0, :size].tolist() for answer, size in zip(answers, lengths, strict=True)]
    assert figures["auprc"] == pytest.approx(auprc(weights, gold))
    some = task.score(answers[1:], [{**EXAMPLES[1]}, {"text": "see it", "label": "good"}])
    assert some["token_f1"].value == token_f1(picks[1:2], gold[1:2]).f1  # of those that people were asked about
    without = [{name: value for name, value in example.items() if name != "evidence"} for example in EXAMPLES]
    assert set(task.score(answers, without)) == {"accuracy", "macro_f1", "kept"}


def test_figures_of_weights_against_what_people_marked():
    task, model = made(AttentionPooling)
    answers = task.predict(model, EXAMPLES)
    figures = task.score(answers, EXAMPLES)
    share = (5 / 8 + 1 / 3 + 0 / 2) / 3
    assert f"the {100 * share:.1f} % of words with the largest weights" in figures["token_f1"].signature
    found = []
    for answer, example in zip(answers, EXAMPLES, strict=True):
        weights = answer.weights[0].tolist()[: len(example["text"].split())]
        most = sorted(weights, reverse=True)[: max(1, round(share * len(weights)))]
        found.append([weight in most for weight in weights])
    assert figures["token_f1"].value == token_f1(found, [example["evidence"] for example in EXAMPLES]).f1
    assert "kept" not in figures
    without = [{"text": example["text"], "label": example["label"]} for example in EXAMPLES]
    assert set(task.score(answers, without)) == {"accuracy", "macro_f1"}


def test_subwords_are_judged_as_words():
    task = Classification(inputs={"text": Text(tokeniser="char")}, label=Label(), evidence=Evidence(unit="words"))
    task.fit(EXAMPLES)
    seed_everything(3)
    model = task.build(Rationale, **SMALL).eval()
    (answer,) = task.predict(model, EXAMPLES[:1])
    pieces = [*EXAMPLES[0]["text"], "</s>"]
    words, place = [], 0
    for word in EXAMPLES[0]["text"].split():
        words.append(any(place + n in answer.attention.picked for n in range(len(word))))
        place += len(word) + 1
    assert answer.attention.keys == pieces
    figures = task.score([answer], EXAMPLES[:1])
    assert figures["kept"].value == pytest.approx(100 * sum(words) / 8)
    assert figures["token_f1"].value == token_f1([words], [EXAMPLES[0]["evidence"]]).f1


def test_explanations_show_picks_and_marks():
    task, model = made()
    items = task.explain(model, EXAMPLES)
    (answer, *_) = task.predict(model, EXAMPLES)
    (shown,) = items[0].maps
    assert shown.name == "rationale"
    assert shown.picked == answer.attention.picked
    assert shown.keys.gold == [2, 3, 5, 6, 7]
    measures = {measure.name: measure.value for measure in items[0].measures}
    count = len([n for n in answer.attention.picked if n < 8])
    assert measures["kept"] == f"{count} of 8 words"
    picks = [n in answer.attention.picked for n in range(8)]
    assert measures["token F1"] == token_f1([picks], [EXAMPLES[0]["evidence"]]).f1
    plain = task.explain(model, [{"text": "a wonderful film"}])[0]
    assert plain.maps[0].keys.gold is None
    assert "token F1" not in {measure.name for measure in plain.measures}
    soft = made(AttentionPooling)
    (map_of_soft,) = soft[0].explain(soft[1], EXAMPLES[:1])[0].maps
    assert map_of_soft.picked is None
    assert map_of_soft.keys.gold == [2, 3, 5, 6, 7]


def test_evidence_is_a_field_of_its_own():
    with pytest.raises(ValueError, match="evidence must be the field evidence, got 'label'"):
        Classification(evidence="label")
    taken = Classification(inputs={"evidence": Text(tokeniser="word")})
    assert taken.extras == {}


def test_marks_beyond_the_end_are_a_bad_row():
    task = Classification(evidence=Evidence(unit="words"))
    rows = [("a fine film", "good", "1-2"), ("dull", "bad", "0-2")]
    columns = {"text": 0, "label": 1, "evidence": 2}
    read = Corpus(columns=columns).read(rows, task.fields, extras=task.extras, check=task.check_example)
    with pytest.raises(BadRow, match="evidence 0-2 is beyond the end of a text of 1 words"):
        list(read)
    kept = Corpus(columns=columns, bad_rows="skip").read(
        rows, task.fields, extras=task.extras, check=task.check_example
    )
    assert list(kept) == [{"text": "a fine film", "label": "good", "evidence": [(1, 2)]}]
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    unnamed = Corpus().read(named, task.fields, extras=task.extras, check=task.check_example)
    assert [sorted(example) for example in unnamed] == [["label", "text"]] * 2  # it is read only where columns name it


def marked_texts(count, seed):
    """Seven words; one of them, which people marked, decides."""
    words = random.Random(seed)
    rows = []
    for _ in range(count):
        text = [f"w{words.randrange(20)}" for _ in range(7)]
        place, label = words.randrange(7), words.choice(["good", "bad", "boring"])
        text[place] = f"{label}{words.randrange(3)}"
        rows.append({"body": " ".join(text), "label": label, "spans": f"{place}-{place + 1}"})
    return rows


def test_from_files_to_explanations(tmp_path, monkeypatch, capsys):
    """With evidence that is named by its column; also what the log says, and going on."""
    monkeypatch.chdir(tmp_path)
    for name, count, seed in (("train", 640, 1), ("test", 50, 3)):
        lines = "".join(json.dumps(row) + "\n" for row in marked_texts(count, seed))
        (tmp_path / f"{name}.jsonl").write_text(lines)
    run = saccade.train(
        "classification/rationale",
        task={"evidence": {"class": "evidence", "unit": "words"}},
        model={
            "embedding_dim": 16,
            "hidden_dim": 16,
            "share": None,
            "sparsity": 0.03,
            "coherence": 0.01,
            "warmup": 50,
            "dropout": 0.0,
        },
        data={"train": "train.jsonl", "columns": {"text": "body", "label": "label", "evidence": "spans"}},
        trainer={"max_steps": 120, "batch_tokens": 512, "learning_rate": 2e-2, "schedule": "constant"},
        output="run",
    )
    figures = {name: figure.value for name, figure in run.evaluate("test.jsonl").figures.items()}
    assert figures["accuracy"] >= 96.0
    assert figures["token_precision"] >= 0.6  # a text without picks counts as 0
    assert figures["kept"] <= 18.0  # one word of seven is 14.3 %
    logged = read_metrics(tmp_path / "run" / "metrics.jsonl")
    steps = [record for record in logged if record["split"] == "train"]
    assert steps[-1]["kept"] < 0.3 < steps[0]["kept"]
    assert {"loss", "sparsity", "coherence", "accuracy"} <= set(steps[-1])
    assert any("token_f1" in record for record in logged if record["split"] == "valid")
    again = saccade.train(resume=tmp_path / "run", overrides={"trainer.max_steps": "121"})
    assert again.model.steps == 121
    capsys.readouterr()
    assert main(["predict", "run", "test.jsonl", "--format", "jsonl"]) in (None, 0)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(said) == 50
    read = {word for row in said for passage in row["rationale"] for word in passage.split()}
    assert {word[:-1] for word in read} >= {"good", "bad"} or {word[:-1] for word in read} >= {"good", "boring"}
    assert main(["explain", "run", "test.jsonl", "--format", "json", "--output", "page.json"]) in (None, 0)
    items = json.loads((tmp_path / "page.json").read_text())["items"]
    golds = [item["maps"][0]["keys"]["gold"] for item in items]
    assert golds == [[int(row["spans"].partition("-")[0])] for row in marked_texts(50, 3)]
