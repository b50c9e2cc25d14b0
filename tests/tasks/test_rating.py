"""Numbers for texts: losses, answers in the user's unit, and the whole way on the command line."""

import csv
import json
import random

import pytest
import torch

import saccade
from saccade.fields import Text
from saccade.models import AttentionPooling
from saccade.tasks import Rating

PRICES = {"flat": 100.0, "house": 300.0, "garden": 50.0, "cellar": 20.0, "ruin": -80.0}
FILLER = ["the", "a", "with", "and", "near", "some"]


def offers(count, seed):
    chosen = random.Random(seed)
    made = []
    for _ in range(count):
        words = chosen.sample(list(PRICES), k=chosen.randint(1, 3))
        text = words + chosen.choices(FILLER, k=3)
        chosen.shuffle(text)
        made.append({"text": " ".join(text), "number": 1000.0 + sum(PRICES[word] for word in words)})
    return made


@pytest.fixture
def fitted():
    task = Rating()
    examples = offers(30, 1)
    task.fit(examples)
    torch.manual_seed(0)
    return task, task.build(AttentionPooling, embedding_dim=6, hidden_dim=7, dropout=0.0).eval(), examples


@pytest.mark.parametrize("kind", ["squared", "absolute", "huber", "pairwise"])
def test_the_loss_is_its_definition(kind, fitted) -> None:
    task, model, examples = fitted
    task.kind = kind
    batch = task.collate([task.encode(example) for example in examples])
    found = model(batch["text"], batch["text_mask"])[:, 0].tolist()
    wanted = [(e["number"] - task.number.mean) / task.number.deviation for e in examples]
    errors = [f - w for f, w in zip(found, wanted, strict=True)]
    pairs = [(a, b) for a, x in zip(found, wanted, strict=True) for b, y in zip(found, wanted, strict=True) if x > y]
    expected = {
        "squared": sum(e * e for e in errors),
        "absolute": sum(map(abs, errors)),
        "huber": sum(e * e / 2 if abs(e) <= 1 else abs(e) - 0.5 for e in errors),
        "pairwise": sum(torch.tensor(b - a).exp().log1p().item() for a, b in pairs),
    }[kind]
    loss = task.loss(model, batch)
    assert float(loss.total.detach()) == pytest.approx(expected, rel=1e-4)
    assert int(loss.count) == (len(pairs) if kind == "pairwise" else len(examples))


def test_the_pairwise_loss_of_one_example_is_nothing(fitted) -> None:
    task, model, examples = fitted
    task.kind = "pairwise"
    loss = task.loss(model, task.collate([task.encode(examples[0])]))
    loss.total.backward()
    assert (float(loss.total.detach()), int(loss.count)) == (0.0, 0)


def test_answers_are_in_the_unit_of_the_data_and_scores_in_deviations(fitted) -> None:
    task, model, examples = fitted
    for example, answer in zip(examples, task.predict(model, examples, batch_size=4), strict=True):
        alone = task.collate([task.prepare(model, example)])
        found = model(alone["text"], alone["text_mask"])[0, 0].item()
        assert answer.score == pytest.approx(found, abs=1e-5)
        assert answer.value == pytest.approx(task.number.mean + found * task.number.deviation, abs=1e-2)
        assert answer.attention.keys[-1] == "</s>"


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"Unknown loss 'squred'.*squared"):
        Rating(loss="squred")
    with pytest.raises(ValueError, match=r"Unknown metric 'rmsd'.*rmse"):
        Rating(metrics=["rmsd"])
    with pytest.raises(ValueError, match="must be the field number"):
        Rating(number="label")
    with pytest.raises(ValueError, match="none may be called number"):
        Rating(inputs={"number": Text()})


def write(path, examples) -> None:
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, ["number", "text"])
        rows.writeheader()
        rows.writerows(examples)


@pytest.mark.parametrize("kind", ["squared", "pairwise"])
def test_learns_prices_on_the_command_line(kind, tmp_path, call, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "offers.csv", offers(400, 2))
    write(tmp_path / "test.csv", offers(60, 3))
    sizes = ("--model.embedding_dim", "16", "--model.hidden_dim", "16", "--model.dropout", "0")
    trainer = ("--trainer.max_epochs", "12", "--trainer.learning_rate", "0.01", "--trainer.batch_tokens", "512")
    more = (
        "--data.columns",
        "{text: text, number: number}",
        "--model.encoder",
        "embedding",
        "--trainer.metric",
        "loss",
    )
    figures = ("--task.loss", kind, "--task.metrics", "[rmse, r2, spearman, pairwise_accuracy]")
    data = ("--data.train", "offers.csv", "--output", "run")
    code, _, err = call("train", "rating/pooling", *data, *sizes, *trainer, *more, *figures)
    assert code == 0, err
    code, out, err = call("evaluate", "run", "--data", "test.csv", "--json")
    assert code == 0, err
    found = json.loads(out)["figures"]
    assert found["pairwise_accuracy"] > 90.0
    if kind == "squared":
        assert found["r2"] > 0.9
        assert found["rmse"] < 40.0
        code, out, _ = call("predict", "run", given="the house\na ruin\n")
        assert [float(line) for line in out.split()] == pytest.approx([1300.0, 920.0], abs=60.0)
    code, out, _ = call("explain", "run", "--input", "a house with some garden", "--format", "json")
    assert code == 0
    shown = json.loads(out)["items"][0]
    assert "number" in [measure["name"] for measure in shown["measures"]]
    assert saccade.load("run").predict(["house"])[0].value > saccade.load("run").predict(["ruin"])[0].value


def test_a_number_that_is_none_names_its_place(tmp_path, call, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offers.csv").write_text("text,number\na flat,100\na house,cheap\n")
    columns = ("--data.columns", "{text: text, number: number}")
    code, _, err = call("train", "rating/pooling", "--data.train", "offers.csv", *columns, "--output", "run")
    assert code != 0
    assert "offers.csv" in err
    assert "3" in err
    assert "not a finite number but 'cheap'" in err
