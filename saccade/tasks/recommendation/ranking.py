"""Items in the order of their predicted ratings: recommendations, and how good they are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from saccade.evaluation.figures import Figure
from saccade.evaluation.ranking import METRICS, score_rankings
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Row
from saccade.tasks.recommendation.data import ReviewedRating
from saccade.tasks.recommendation.options import RecommendationOptions

SAMPLED = "sampled_"
RANKING = (*METRICS, *(SAMPLED + name for name in METRICS))
"""The figures of rankings: against all items, and against a sample of them."""

BATCH = 256
"""How many ratings are computed together if no reasons are needed."""


@torch.no_grad()
def ratings(task: ReviewedRating, model: nn.Module, user: Example, items: Sequence[str]) -> NDArray[np.float64]:
    """(items,): the predicted ratings of one user, in deviations from the mean.

    Args:
        task: with the reviews.
        model: made for it.
        user: an example whose user and time count.
        items: by name.
    """
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    rows = [task.prepare(model, {**user, "item": item}) for item in items]
    found: list[float] = []
    was_training = model.training
    model.eval()
    try:
        for start in range(0, len(rows), BATCH):
            batch = _collated(task, rows[start : start + BATCH])
            found += task.ratings(model, {name: each.to(device) for name, each in batch.items()}).tolist()
    finally:
        model.train(was_training)
    return np.asarray(found, dtype=np.float64)


def _collated(task: ReviewedRating, rows: Sequence[Row]) -> dict[str, Tensor]:
    """A batch of one user, whose reviews are padded only once if all rows read the same ones."""
    if any(row["user_reviews"] != rows[0]["user_reviews"] for row in rows):
        return task.collate(rows)
    once = {name: each.expand(len(rows), *each.shape[1:]) for name, each in task.side("user", rows[:1]).items()}
    return once | task.side("item", rows)


def recommended(
    task: ReviewedRating, model: nn.Module, example: Example, options: RecommendationOptions, batch_size: int
) -> Answer:
    """The items with the highest predicted ratings for a user, each with its reasons, as alternatives of one answer.

    The answer is empty for a user who has reviewed every item: one such user must not cost the others their answers.
    """
    items = task.item.names if options.seen else unseen(task, example["user"])
    if not items:
        return Answer(None, 0.0, details={"reviewed_all": True})
    scores = ratings(task, model, example, items)
    best = np.argsort(-scores, kind="stable")[: options.top].tolist()
    rated = task.predict(model, [{**example, "item": items[place]} for place in best], batch_size=batch_size)
    listed = [
        replace(answer, value=items[place], details={"rating": answer.value, **answer.details})
        for place, answer in zip(best, rated, strict=True)
    ]
    return replace(listed[0], alternatives=listed)


def unseen(task: ReviewedRating, user: str) -> list[str]:
    """The items that a user has not reviewed in the training data."""
    known = set(task.log.of["item"][task.log.reviews_of("user", task.user.encode(user))].tolist())
    if not task.user.encode(user):  # nobody in particular
        known = set()
    return [name for number, name in enumerate(task.item.names, start=1) if number not in known]


def rankings(
    task: ReviewedRating, model: nn.Module, examples: Sequence[Example], metrics: Sequence[str]
) -> dict[str, Figure]:
    """How high the items of some examples rank in their users' lists.

    A user's candidates are the items of these examples, and all items, or a sample of them, that the user reviewed
    neither there nor in the training data. Reviews from after a user's first example are not read. Users without an
    item that the training data has are left out.

    Args:
        task: with the reviews.
        model: made for it.
        examples: what users reviewed.
        metrics: names from `RANKING`.
    """
    by_user: dict[str, list[Example]] = {}
    for example in examples:
        if task.item.encode(example["item"]):
            by_user.setdefault(example["user"], []).append(example)
    full = any(not name.startswith(SAMPLED) for name in metrics)
    everything, sampled = [], []
    for user, own in by_user.items():
        held = list(dict.fromkeys(example["item"] for example in own))
        others = [item for item in unseen(task, user) if item not in set(held)]
        drawn = set(random.Random(user).sample(others, min(task.negatives, len(others))))
        first = min(own, key=lambda example: (example.get("time") is None, example.get("time") or 0.0))
        candidates = [*held, *(others if full else sorted(drawn))]
        scores = ratings(task, model, {"user": user, "time": first.get("time")}, candidates)
        wanted = np.arange(len(candidates)) < len(held)
        everything.append((scores, wanted))
        chosen = wanted | np.array([item in drawn for item in candidates])
        sampled.append((scores[chosen], wanted[chosen]))
    if not by_user:
        raise ValueError("No example has an item of the training data: there is nothing to rank.")
    found = score_rankings(everything, [n for n in metrics if not n.startswith(SAMPLED)], "all items not yet reviewed")
    names = [name.removeprefix(SAMPLED) for name in metrics if name.startswith(SAMPLED)]
    some = score_rankings(sampled, names, f"{task.negatives:,} random items not yet reviewed")
    return found | {SAMPLED + name: figure for name, figure in some.items()}
