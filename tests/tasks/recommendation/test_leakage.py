"""What is read to predict a rating never contains the review to be predicted, nor anything later."""

import pytest

from saccade.data.splits import latest
from saccade.fields import Reviews
from saccade.runs.plan import Plan
from saccade.runs.splitting import Purpose, Split
from tests.tasks.recommendation.examples import fitted, reviews

ONCE = {"max_steps": 1}


def words_read(task, example):
    """Everything that a model gets to see of texts for one rating."""
    batch = task.collate([task.encode(example)])
    names = task.text.vocabulary()
    return {
        names[token] for side in ("user", "item") for token in batch[f"{side}_words"][batch[f"{side}_mask"]].tolist()
    }


@pytest.mark.parametrize("history", ["earlier", "others"])
def test_the_review_to_be_predicted_is_never_read(history):
    task = fitted(history=history)
    for example in reviews():
        own = set(example["text"][0].split())
        assert not own & words_read(task, example)
        assert not own & words_read(task, {**example, "time": None})


def test_others_are_all_but_that_one():
    task = fitted(history="others")
    example = reviews()[4]
    wanted = {word for row in reviews() for word in row["text"][0].split()
              if (row["user"] == example["user"]) != (row["item"] == example["item"])}  # fmt: skip
    assert words_read(task, example) == wanted


def test_nothing_from_the_same_moment_or_later():
    task = fitted()
    for example in reviews():
        wanted = {
            word
            for row in reviews()
            if row["time"] < example["time"] and (row["user"] == example["user"] or row["item"] == example["item"])
            for word in row["text"][0].split()
        }
        assert words_read(task, example) == wanted


def test_a_second_review_of_the_same_item_is_not_read_either():
    task = fitted()
    again = {**reviews()[0], "time": 999.0}
    assert not set(again["text"][0].split()) & words_read(task, again)


def test_reviews_without_a_time_are_not_earlier():
    rows = [{**row, "time": None if row["user"] == "U3" else row["time"]} for row in reviews()]
    task = fitted()
    task.fit(rows)
    assert task.encode({"user": "U3", "item": "I1", "time": 999.0})["user_reviews"] == []
    assert len(task.encode({"user": "U3", "item": "I1", "time": None})["user_reviews"]) == 3
    task.fit([{**row, "time": None} for row in reviews()])  # no times at all: there is no earlier and later
    assert len(task.encode({"user": "U3", "item": "I1", "time": 999.0})["user_reviews"]) == 3


def test_the_latest_reviews_are_read_from_the_earliest_on():
    task = fitted(text=Reviews(max_reviews=2))
    rows = task.encode({"user": "U3", "item": "none", "time": None})["user_reviews"]
    assert [task.log.times[row] for row in rows] == [103.0, 203.0]


@pytest.mark.parametrize("split", ["time", "leave_one_out"])
def test_held_out_reviews_are_in_no_history(split):
    plan = Plan({"task": "recommendation", "model": "mpcn", "data": {"split": split}, "trainer": ONCE})
    rows = reviews()
    parts = Split(rows, plan.task, plan.data).parts(0.2)
    train = [row for row, part in zip(rows, parts, strict=True) if part == Purpose.TRAIN]
    held = [row for row, part in zip(rows, parts, strict=True) if part == Purpose.VALID]
    plan.task.fit(train)
    secret = {word for row in held for word in row["text"][0].split()}
    for row in rows:
        assert not secret & words_read(plan.task, row)
    if split == "time":
        assert len(held) == 4
        assert max(row["time"] for row in train) < min(row["time"] for row in held)
        assert latest([row["time"] for row in rows], 4).sum() == 4
    else:
        assert [row["user"] for row in held] == [f"U{n}" for n in range(7)]
        assert {row["time"] for row in held} == {200.0 + n for n in range(7)}


def test_tasks_without_times_refuse_such_splits():
    plan = Plan({"task": "rating", "model": "pooling", "data": {"split": "time"}, "trainer": ONCE})
    with pytest.raises(ValueError, match=r"Rating have no time and no user: leave out data\.split"):
        Split([{"text": "a", "number": 1.0}], plan.task, plan.data)
