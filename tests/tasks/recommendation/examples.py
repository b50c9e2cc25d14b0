"""A few users and items, whose reviews say who wrote them about what."""

from typing import Any

import torch

from saccade.models import create
from saccade.tasks import Recommendation

USERS, ITEMS = 7, 5


def reviews() -> list[dict[str, Any]]:
    """Every user reviews three of five items, all at different times; no two reviews have a word in common."""
    rows = []
    for user in range(USERS):
        for turn in range(3):
            item = (user + 2 * turn) % ITEMS
            text = f"u{user}i{item} u{user}i{item}turn{turn} i{item}u{user}"
            time = float(100 * turn + user)
            rows.append({"user": f"U{user}", "item": f"I{item}", "rating": 1.0 + item, "text": [text], "time": time})
    return rows


def fitted(**options: Any) -> Recommendation:
    task = Recommendation(**options)
    task.fit(reviews())
    return task


def model_of(task: Recommendation, name: str = "mpcn", **options: Any) -> Any:
    torch.manual_seed(0)
    small = {"embedding_dim": 5, "hidden_dim": 3, "pointers": 2} if name == "mpcn" else {}
    return create(name, **task.sizes(), **{**small, **options}).eval()
