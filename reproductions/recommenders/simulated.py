"""Users whose ratings follow from one review that each has written before, and whether a model points at it."""

import random
from collections.abc import Sequence
from typing import Any

from saccade.runs import Run

ASPECTS = ("battery", "display", "sound", "keyboard", "weight", "camera")
GRADES = (("awful", "useless"), ("weak", "poor"), ("okay", "decent"), ("good", "solid"), ("great", "perfect"))
"""What a review says of an aspect, from 1 to 5."""

FILLERS = ("arrived", "today", "my", "old", "one", "broke", "so", "i", "bought", "it", "again", "here", "for", "work")
ITEMS = 60
ROUNDS = 3


def simulate(users: int, seed: int) -> list[dict[str, Any]]:
    """Each user has a grade for every aspect. An item has one aspect, and its rating is the user's grade for that.

    Every user reviews an item of each aspect, then another one of each, and so on, `ROUNDS` times. So the rating of a
    later item follows from any earlier review of the same aspect, and from nothing else: all others are about other
    aspects, and other users have grades of their own.
    """
    draws = random.Random(seed)
    rows = []
    for user in range(users):
        grades = {aspect: draws.randrange(len(GRADES)) for aspect in ASPECTS}
        seen: set[int] = set()
        for turn in range(ROUNDS * len(ASPECTS)):
            if turn % len(ASPECTS) == 0:
                order = draws.sample(range(len(ASPECTS)), len(ASPECTS))
            number = order[turn % len(ASPECTS)]
            item = draws.choice([n for n in range(number, ITEMS, len(ASPECTS)) if n not in seen])
            seen.add(item)
            aspect = ASPECTS[number]
            words = [aspect, draws.choice(GRADES[grades[aspect]]), *draws.sample(FILLERS, 4)]
            draws.shuffle(words)
            rating = 1.0 + grades[aspect]
            time = float(1 + turn * users + draws.randrange(users))
            text = " ".join(words)
            rows.append({"user": f"U{user}", "item": f"I{item}", "rating": rating, "text": text, "time": time})
    return rows


def parts(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The last review of each user to test, the one before to validate, and the others to train."""
    last: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: float(row["time"])):
        last.setdefault(row["user"], []).append(row)
    several = list(last.values())
    return {
        "train": [row for own in several for row in own[:-2]],
        "valid": [own[-2] for own in several],
        "test": [own[-1] for own in several],
    }


def pointer_accuracy(run: Run, rows: Sequence[dict[str, Any]]) -> float:
    """How often the user's review that the first pointer chose is of the aspect of the item, in %."""
    answers = run.predict([{role: row[role] for role in ("user", "item", "time")} for row in rows])
    right = 0
    for row, answer in zip(rows, answers, strict=True):
        (aspect,) = set(row["text"].split()) & set(ASPECTS)
        right += aspect in answer.details["reasons"]["user"]["review"].split()
    return 100.0 * right / len(rows)


def chance(run: Run, rows: Sequence[dict[str, Any]]) -> float:
    """How often a review drawn at random from those that the model may read would be right, in %."""
    total = 0.0
    for row in rows:
        (aspect,) = set(row["text"].split()) & set(ASPECTS)
        read = [run.task.log.texts[number].split() for number in run.task.encode(row)["user_reviews"]]
        total += sum(aspect in words for words in read) / len(read)
    return 100.0 * total / len(rows)
