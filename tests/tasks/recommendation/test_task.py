"""Ratings, recommendations, their reasons and figures; what happens to the unknown."""

import json

import numpy as np
import pytest
import torch

from saccade.artifacts import ArtifactError
from saccade.data.storage import store
from saccade.fields import Reviews
from saccade.tasks import Recommendation, tasks
from saccade.tasks.recommendation.ranking import ratings, unseen
from tests.tasks.recommendation.examples import fitted, model_of, reviews


@pytest.fixture(scope="module")
def task():
    return fitted()


@pytest.fixture(scope="module")
def model(task):
    return model_of(task)


def test_reachable_by_short_name_and_checked():
    assert tasks.get("recommendation") is Recommendation
    for options, message in (
        ({"history": "later"}, "history must be 'earlier' or 'others'"),
        ({"loss": "cubed"}, "Unknown loss 'cubed'"),
        ({"metrics": ["ndcg@5"]}, r"Unknown metric 'ndcg@5'.*ndcg@10"),
        ({"negatives": 0}, "negatives"),
        ({"text": "text"}, "text must be the field reviews"),
    ):
        with pytest.raises(ValueError, match=message):
            Recommendation(**options)


def test_a_rating_does_not_depend_on_the_others(task, model):
    inputs = [{"user": f"U{n}", "item": "I1", "time": None} for n in range(5)]
    together = task.predict(model, inputs)
    alone = [task.predict(model, [each], batch_size=1)[0] for each in inputs]
    assert [a.value for a in together] == pytest.approx([a.value for a in alone], abs=1e-5)


def test_the_reason_is_a_review_that_was_read_and_words_of_it(task, model):
    (answer,) = task.predict(model, [{"user": "U0", "item": "I1", "time": None}])
    texts = [row["text"][0] for row in reviews()]
    for side, reason in answer.details["reasons"].items():
        assert reason["review"] in texts
        assert f"{'u0' if side == 'user' else 'i1'}" in reason["review"]
        assert set(reason["words"]) <= set(reason["review"].split())
    assert "cold" not in answer.details
    assert answer.attention.role == "item"
    assert answer.attention.weights.sum() == pytest.approx(1.0, abs=1e-4)
    assert len(answer.attention.picked) in (3, 6)  # the words of one review, or of two
    json.dumps(answer.details)


@pytest.mark.parametrize(
    ("user", "item", "cold"), [("new", "I1", ["user"]), ("U1", "new", ["item"]), ("new", "new", ["user", "item"])]
)
@pytest.mark.parametrize("name", ["mpcn", "dual_attention", "deep_conn", "factorisation"])
def test_cold_users_and_items(name, user, item, cold, task):
    model = model_of(task, name)
    (answer,) = task.predict(model, [{"user": user, "item": item, "time": None}])
    assert answer.details["cold"] == cold
    assert np.isfinite(answer.value)
    if len(cold) == 2:
        assert answer.value == pytest.approx(task.number.mean)
    if name == "factorisation":
        torch.nn.init.normal_(model.item_bias.weight[1:])
        number = task.item.encode(item)
        (answer,) = task.predict(model, [{"user": "new", "item": item, "time": None}])
        assert answer.score == pytest.approx(model.item_bias.weight[number, 0].item())  # the bias of the item is left
    assert f"of {'an item' if cold == ['item'] else 'a user'} without a review" in task.remarks([answer])[0] or name


def test_who_has_no_earlier_review_is_cold_too(task, model):
    first = reviews()[0]
    (answer,) = task.predict(model, [first])
    assert answer.details["cold"] == ["user", "item"]
    assert task.remarks([answer]) == [
        "1 of 1 ratings are of a user without a review to read.",
        "1 of 1 ratings are of an item without a review to read.",
    ]


def test_recommends_what_the_user_has_not_reviewed(task, model):
    (answer,) = task.predict(model, [{"user": "U2", "item": None, "time": None}], top=2)
    items = unseen(task, "U2")
    scores = ratings(task, model, {"user": "U2", "time": None}, items)
    assert [each.value for each in answer.alternatives] == [items[place] for place in np.argsort(-scores)[:2]]
    assert answer.value == answer.alternatives[0].value
    rated = task.predict(model, [{"user": "U2", "item": answer.value, "time": None}])[0]
    assert answer.details["rating"] == pytest.approx(rated.value, abs=1e-5)
    assert answer.details["reasons"] == rated.details["reasons"]
    cells = task.cells(answer.alternatives[0], None)
    assert cells[:2] == [answer.value, f"{rated.value:.2f}"]
    assert answer.details["reasons"]["user"]["review"] in cells[2]
    (every,) = task.predict(model, [{"user": "U2", "item": None, "time": None}], seen=True)
    assert sorted(each.value for each in every.alternatives) == task.item.names
    (anybody,) = task.predict(model, [{"user": "new", "item": None, "time": None}])
    assert len(anybody.alternatives) == 5


def test_a_user_who_has_reviewed_everything(model):
    task = fitted()
    extra = [{**reviews()[0], "item": f"I{n}"} for n in range(5)]
    task.fit([*reviews(), *extra])
    inputs = [{"user": user, "item": None, "time": None} for user in ("U0", "U1")]
    answers = task.predict(model, inputs, top=1)
    assert [bool(answer.alternatives) for answer in answers] == [False, True]
    assert task.cells(answers[0], None) == [""]
    assert task.as_json(inputs[0], answers[0])["answer"] is None
    assert task.remarks(answers)[-1].startswith("1 of 2 users have reviewed every item: set seen")
    with pytest.raises(ValueError, match="'U0' has reviewed every item: set seen"):
        task.explain(model, inputs)


def test_rankings_against_all_items_and_a_sample(task, model):
    held = [{**row, "item": unseen(task, row["user"])[0], "time": 999.0} for row in reviews()[::3]]
    task.negatives = 1
    names = ["ndcg@10", "recall@10", "sampled_ndcg@10", "sampled_recall@10"]
    task.choose_metrics(["mse", *names])
    found = task.measure(model, task.predict(model, held), held)
    assert list(found) == ["mse", *names]
    assert found["recall@10"].value == found["sampled_recall@10"].value == 100.0  # there are fewer than ten items
    for row in held[:3]:
        items = unseen(task, row["user"])
        scores = ratings(task, model, row, items)
        rank = int((scores > scores[items.index(row["item"])]).sum())
        alone = task.measure(model, task.predict(model, [row]), [row])
        assert alone["ndcg@10"].value == pytest.approx(100 / np.log2(rank + 2))
    assert "1 random items" in found["sampled_ndcg@10"].signature
    with pytest.raises(ValueError, match="nothing to rank"):
        task.measure(model, task.predict(model, [{**held[0], "item": "new"}]), [{**held[0], "item": "new"}])
    task.choose_metrics(["mse", "mae"])


def test_ratings_of_many_items_are_those_of_each(task, model):
    user = {"user": "U4", "time": 150.0}
    several = ratings(task, model, user, task.item.names)  # some of which this user has reviewed
    alone = [task.predict(model, [{**user, "item": item}])[0].score for item in task.item.names]
    assert several == pytest.approx(alone, abs=1e-5)


def test_saved_and_loaded(task, model, tmp_path):
    task.save(tmp_path)
    loaded = Recommendation()
    loaded.load(tmp_path)
    for example in reviews():
        assert loaded.encode(example) == task.encode(example)
    assert loaded.log.texts == task.log.texts
    inputs = [{"user": "U0", "item": "I1", "time": None}]
    assert loaded.predict(model, inputs)[0].details == task.predict(model, inputs)[0].details


@pytest.mark.parametrize(
    "change",
    [{"user": 99}, {"item": -1}, {"tokens": [10**6]}, {"text": 5}, {"user": "U0"}, {"time": float("inf")}],
)
def test_a_damaged_log_is_refused(change, task, tmp_path):
    task.save(tmp_path)
    row = {"user": 1, "item": 1, "time": 0.5, "text": "a", "tokens": [4]}
    (tmp_path / "reviews.arrow").unlink()
    store([{**row, **change}], tmp_path / "reviews.arrow", exact=True)
    with pytest.raises(ArtifactError, match=r"reviews\.arrow is damaged: review 1"):
        Recommendation().load(tmp_path)
    (tmp_path / "reviews.arrow").write_bytes(b"no arrow")
    with pytest.raises(ArtifactError, match="not a complete Arrow file"):
        Recommendation().load(tmp_path)


def test_without_texts_there_are_names():
    task = fitted()
    task.fit([{**row, "text": None} for row in reviews()])
    model = model_of(task, "factorisation")
    (answer,) = task.predict(model, [{"user": "U0", "item": "I1", "time": None}])
    assert answer.attention is None
    assert "reasons" not in answer.details


def test_reviews_without_words_are_not_pointed_at():
    task = fitted(text=Reviews(max_words=2))
    task.fit([{**row, "text": [""] if row["user"] == "U0" else row["text"]} for row in reviews()])
    assert task.encode({"user": "U0", "item": "I1", "time": None})["user_reviews"] == []
    assert all(len(tokens) <= 2 for tokens in task.log.tokens)


@pytest.mark.parametrize("name", ["mpcn", "dual_attention"])
def test_explained_on_both_sides_beside_the_true_rating(name, task):
    model = model_of(task, name)
    example = {"user": "U0", "item": "I1", "time": None, "rating": 4.0}
    user, item = task.explain(model, [example])
    answer = task.predict(model, [example])[0]
    assert user.title == f"U0 | I1 → {answer.text} (true: 4), reviews by the user"
    assert item.title.endswith("reviews of the item")
    for side, shown in (("u0", user), ("i1", item)):
        first = shown.maps[0]
        assert first.queries.names == [f"{answer.text} (true: 4)"]
        assert all(side in word for word in first.keys.names)
        assert {m.name: m.value for m in shown.measures}["true rating"] == "4"
        if name == "mpcn":
            choices = [each for each in shown.maps if "pointer" in each.name]
            assert len(choices) == 2
            words = {place for each in choices for place in first.keys.sentences[each.picked[0]]}
            assert set(first.picked) == words
            assert set(first.weights[0, 0].nonzero().flatten().tolist()) == words
    assert len(task.explain(model, [{"user": "new", "item": "I1", "time": None}])) == 1  # nothing to show of the user
    assert len(task.explain(model, [{"user": "U0", "item": None, "time": None}], top=2)) == 4


def test_models_of_names_have_nothing_to_show(task):
    with pytest.raises(ValueError, match="Factorisation: it has no attention to show"):
        task.explain(model_of(task, "factorisation"), [{"user": "U0", "item": "I1", "time": None}])
