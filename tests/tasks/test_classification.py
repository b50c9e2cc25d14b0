"""Classification: one label, several, or a grade."""

import math
import random
from dataclasses import replace
from functools import partial

import pytest
import torch

import saccade
from saccade.fields import Label, Labels, Number, Text
from saccade.models import AttentionPooling
from saccade.tasks import Classification, tasks
from saccade.tasks.labelling import OrderedLabels, above
from saccade.training import seed_everything

EXAMPLES = [
    {"text": "a fine film", "label": "3"},
    {"text": "so dull", "label": "1"},
    {"text": "dull and long and dull", "label": "1"},
    {"text": "not bad at all", "label": "2"},
]
SEVERAL = [{**example, "label": ["x", "y"][: int(example["label"]) - 1]} for example in EXAMPLES]
SMALL = {"embedding_dim": 7, "hidden_dim": 5, "dropout": 0.0}


def fitted(label, **arguments):
    task = Classification(label=label, **arguments)
    examples = SEVERAL if isinstance(task.label, Labels) else EXAMPLES
    task.fit(examples)
    seed_everything(3)
    return task, task.build(AttentionPooling, **SMALL).eval(), examples


def batch_of(task, examples):
    return task.collate([task.encode(example) for example in examples])


LABELS = {"one": Label, "ordered": partial(Label, ordered=True), "several": Labels}


def test_reachable_by_short_name():
    assert tasks.get("classification") is Classification


@pytest.mark.parametrize(("form", "outputs"), [("one", 3), ("several", 2), ("ordered", 2)])
def test_the_form_says_how_many_numbers_a_model_gives(form, outputs):
    task, model, examples = fitted(LABELS[form]())
    assert task.form.name == form
    assert task.sizes()["classes"] == outputs
    assert task.logits(model, batch_of(task, examples)).shape == (4, outputs)
    assert task.build(AttentionPooling, **SMALL).output_proj.out_features == outputs


@pytest.mark.parametrize("form", list(LABELS))
def test_loss_by_hand(form):
    task, model, examples = fitted(LABELS[form]())
    total, right = 0.0, 0.0
    for example in examples:  # alone, without padding
        z = task.logits(model, batch_of(task, [example]))[0].tolist()
        if form == "one":
            place = task.label.names.index(example["label"])
            total += math.log(sum(map(math.exp, z))) - z[place]
            right += z[place] == max(z)
            continue
        if form == "several":
            wanted = [name in example["label"] for name in task.label.names]
        else:
            wanted = [int(example["label"]) > grade for grade in (1, 2)]
        signs = [(-1) ** (not yes) * logit for yes, logit in zip(wanted, z, strict=True)]
        total += sum(math.log1p(math.exp(-sign)) for sign in signs)
        if form == "several":
            right += sum(sign > 0 for sign in signs) / len(signs)
        else:
            right += sum(logit > 0 for logit in z) == int(example["label"]) - 1
    loss = task.loss(model, batch_of(task, examples))
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.parts["loss"].item() == pytest.approx(total, rel=1e-5)
    assert loss.parts["accuracy"].item() == pytest.approx(right)
    assert int(loss.count) == 4


def test_smoothing_is_for_training_alone():
    task, model, examples = fitted(Label(), label_smoothing=0.3)
    batch = batch_of(task, examples)
    logits = task.logits(model, batch).log_softmax(1)
    plain = -logits.gather(1, batch["label"][:, None]).sum().item()
    smoothed = 0.7 * plain - 0.3 * logits.mean(1).sum().item()
    assert task.loss(model.eval(), batch).total.item() == pytest.approx(plain, rel=1e-5)
    found = task.loss(model.train(), batch)
    assert found.total.item() == pytest.approx(smoothed, rel=1e-5)
    assert found.parts["loss"].item() == pytest.approx(plain, rel=1e-5)


BALANCED = {  # of the four examples above: 4 / (classes * examples), and of several labels 4 / (2 * examples)
    "one": {"1": 4 / 6, "2": 4 / 3, "3": 4 / 3},
    "ordered": {"1": 4 / 6, "2": 4 / 3, "3": 4 / 3},
    "several": {"x": (4 / 4, 4 / 4), "y": (4 / 2, 4 / 6)},
}


@pytest.mark.parametrize("form", list(LABELS))
@pytest.mark.parametrize("given", ["balanced", "named"])
def test_classes_count_by_their_weights_in_training_alone(form, given):
    named = {"y": 3.0} if form == "several" else {"1": 0.25, "3": 2.0}
    task, model, examples = fitted(LABELS[form](), class_weights="balanced" if given == "balanced" else named)
    weights = {"x": (1.0, 1.0), "y": (3.0, 1.0)} if form == "several" else {"1": 0.25, "2": 1.0, "3": 2.0}
    weights = BALANCED[form] if given == "balanced" else weights
    batch = batch_of(task, examples)
    logits = task.logits(model, batch)
    plain = wanted = 0.0
    for row, example in zip(logits, examples, strict=True):
        if form == "one":
            loss = -row.log_softmax(0)[task.label.names.index(example["label"])].item()
            plain, wanted = plain + loss, wanted + weights[example["label"]] * loss
            continue
        if form == "ordered":
            losses = [
                math.log1p(math.exp(-z if int(example["label"]) > k else z)) for k, z in enumerate(row.tolist(), 1)
            ]
            plain, wanted = plain + sum(losses), wanted + weights[example["label"]] * sum(losses)
            continue
        for name, z in zip(task.label.names, row.tolist(), strict=True):
            has = name in example["label"]
            loss = math.log1p(math.exp(-z if has else z))
            plain, wanted = plain + loss, wanted + weights[name][not has] * loss
    found = task.loss(model.train(), batch)
    assert found.total.item() == pytest.approx(wanted, rel=1e-5)
    assert found.parts["loss"].item() == pytest.approx(plain, rel=1e-5)
    assert task.loss(model.eval(), batch).total.item() == pytest.approx(plain, rel=1e-5)


def test_weights_of_labels_that_there_are_not():
    with pytest.raises(ValueError, match=r"class_weights names 'godo', which is not a label\. Did you mean 'good'"):
        Classification(class_weights={"godo": 2.0}).fit([{"text": "x", "label": "good"}, {"text": "y", "label": "bad"}])


def test_grades_are_differences_of_boundaries():
    logits = torch.tensor([[2.0, 0.5, -1.0], [-1.0, 3.0, -2.0]])  # the second row crosses
    first, second = OrderedLabels(Label(ordered=True)).probabilities(logits)
    p = [1.0, *torch.sigmoid(logits[0]).tolist(), 0.0]
    assert first.tolist() == pytest.approx([p[k] - p[k + 1] for k in range(4)], abs=1e-6)
    assert (second >= 0).all()
    assert second.sum().item() == pytest.approx(1.0)
    assert above(torch.tensor([0, 2, 3]), 3).tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("form", list(LABELS))
def test_answers_do_not_depend_on_the_batch(form):
    task, model, examples = fitted(LABELS[form]())
    texts = [example["text"] for example in examples]
    for text, together in zip(texts, task.predict(model, texts, batch_size=3, top=2), strict=True):
        (alone,) = task.predict(model, [text], top=2)
        assert together.value == alone.value
        assert together.details["probabilities"] == pytest.approx(alone.details["probabilities"], abs=1e-5)
        assert list(together.details["probabilities"]) == task.label.names
        assert together.attention.keys == [*text.split(), "</s>"]
        assert together.weights.shape == (1, len(together.attention.keys))
        assert together.weights.sum().item() == pytest.approx(1.0, abs=1e-5)
        assert [a.score for a in together.alternatives] == sorted(
            (a.score for a in together.alternatives), reverse=True
        )
        assert len(together.alternatives) == 2
        if form != "several":
            assert together.score == pytest.approx(max(together.details["probabilities"].values()), abs=1e-5)
            assert together.alternatives[0].value == together.value


def test_a_threshold_chooses_more_or_fewer_labels():
    task, model, _ = fitted(Labels())
    few, many = (task.predict(model, ["a fine film"], threshold=t)[0].value for t in (0.999, 0.001))
    assert (few, many) == ([], ["x", "y"])


def test_figures_of_an_evaluation():
    task, model, examples = fitted(Label(ordered=True), metrics=["accuracy", "mean_absolute_error"])
    found = task.evaluate(model, examples)
    values = [answer.value for answer in task.predict(model, examples)]
    wanted = [example["label"] for example in examples]
    assert found["accuracy"] == 100 * sum(a == b for a, b in zip(values, wanted, strict=True)) / 4
    assert found["mean_absolute_error"] == sum(abs(int(a) - int(b)) for a, b in zip(values, wanted, strict=True)) / 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": Number()}, "label must be the field label, labels, tags, visit_label or visit_labels, got Number"),
        ({"label": "lable"}, "Did you mean 'label'"),
        ({"inputs": {}}, "at least one input"),
        ({"inputs": {"label": Text()}}, "none may be called label"),
        ({"metrics": ["acuracy"]}, "Did you mean 'accuracy'"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"class_weights": "even"}, "class_weights must be 'none', 'balanced' or weights by name"),
        ({"class_weights": {"a": -1.0}}, "class_weights must be 0 or more, got -1.0 for 'a'"),
        ({"metrics": ["quadratic_weighted_kappa"]}, "is a figure of ordered labels"),
    ],
)
def test_impossible_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Classification(**arguments)


@pytest.mark.parametrize(("options", "message"), [({"top": 0}, "top must be"), ({"threshold": 1.5}, "threshold must")])
def test_impossible_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Classification.options.of(options)


def films(count: int, seed: int) -> list[tuple[str, str]]:
    """Reviews in which one word decides, at any place."""
    draws = random.Random(seed)
    found = []
    for _ in range(count):
        words = draws.choices(["the", "film", "was", "long", "and", "actors", "were"], k=draws.randint(3, 9))
        label = draws.choice(["good", "bad"])
        words.insert(draws.randrange(len(words) + 1), {"good": "superb", "bad": "awful"}[label])
        found.append((" ".join(words), label))
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return saccade.train(
        task={"class": "classification", "metrics": ["accuracy", "macro_f1", "auroc"]},
        model={"class": "pooling", "embedding_dim": 16, "hidden_dim": 16, "encoder": "embedding"},
        data={"train": films(300, 1), "valid": films(20, 2)},
        trainer={"max_steps": 80, "learning_rate": 1e-2, "batch_tokens": 600, "validate_every": 40},
        output=tmp_path_factory.mktemp("runs") / "films",
    )


def test_it_learns_and_looks_at_the_word_that_decides(run):
    tests = films(100, 3)
    figures = run.evaluate(tests).figures
    assert figures["accuracy"].value >= 95
    assert figures["auroc"].value >= 95
    answers = run.predict([text for text, _ in tests])
    looked = [answer.attention.keys[int(answer.weights[0].argmax())] for answer in answers]
    assert sum(word in ("superb", "awful") for word in looked) >= 95


def test_an_evaluation_has_tables_and_a_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    found = run.evaluate(films(60, 5), plot=tmp_path / "reliability.png")
    confusion, classes, bins = found.tables
    assert sum(map(sum, confusion.rows.values())) == sum(row[-1] for row in classes.rows.values()) == 60
    assert sum(row[0] for row in bins.rows.values()) == 60
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")


def test_labels_that_another_training_saw_are_scored_too(run):
    examples = [{"text": "superb", "label": "good"}, {"text": "awful", "label": "odd"}]
    answers = run.task.predict(run.model, [example["text"] for example in examples])
    answers.append(replace(answers[0], value="odd", details={"probabilities": {"good": 0.2, "odd": 0.8}}))
    examples.append({"text": "strange", "label": "odd"})
    assert run.task.pooled(answers, examples)["accuracy"].value == pytest.approx(200 / 3)
    assert list(run.task.tables(answers, examples)[0].rows) == ["bad", "good", "odd"]


def test_loaded_answers_the_same(run):
    texts = [text for text, _ in films(7, 4)]
    again = saccade.load(run.folder).predict(texts)
    assert [a.value for a in again] == [a.value for a in run.predict(texts)]


def test_an_explanation_has_the_words_as_keys(run):
    (item,) = run.explain(["the film was superb"])
    pooled = next(each for each in item.maps if each.name == "pooling")
    assert pooled.keys.pieces == ["the", "film", "was", "superb", "</s>"]
    assert pooled.weights.shape[-2:] == (1, 5)
    assert pooled.keys.pieces[int(pooled.weights[0, 0].argmax())] == "superb"
    assert "the film was superb" in item.title
    assert "good" in item.title
    with pytest.raises(ValueError, match="fits none of pooling"):
        run.explain(["the film"], keep="cross*")
    (strange,) = run.explain(["a zebra was superb"])
    assert any(measure.name == "unknown" and "zebra" in str(measure.value) for measure in strange.measures)


def test_several_queries_are_shown_as_heads_also_of_a_text_with_as_many_tokens():
    task, _, _ = fitted(Label())
    model = task.build(AttentionPooling, **SMALL, num_queries=5).eval()
    for text in ("a b c d", "a b"):
        (answer,) = task.predict(model, [text])
        (item,) = task.explain(model, [{"text": text}])
        (pooled,) = item.maps
        count = len(text.split()) + 1
        assert pooled.weights.shape == (5, 1, count)
        torch.testing.assert_close(answer.weights, pooled.weights.mean(0))


@pytest.mark.parametrize("label", ["labels", "tags"])
def test_empty_inputs_are_not_said_to_have_no_likely_label(label):
    task = Classification(label=label)
    assert task.remarks([task.empty_answer()]) == []
