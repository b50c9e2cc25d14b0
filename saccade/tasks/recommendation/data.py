"""The data of recommendation: users, items, and their reviews."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.fields import Field, Identity, Moment, Number, OptionalField, Reviews
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Row
from saccade.tasks.metric_names import RecommendationMetric
from saccade.tasks.rating import Rating, known_loss
from saccade.tasks.recommendation.log import SIDES, ReviewLog, Side

GIVEN = ("user", "item", "user_words", "user_mask", "item_words", "item_mask")
"""The tensors that a model reads, in this order."""


class ReviewedRating(Rating):
    """The data half of recommendation; see `Recommendation`."""

    role: ClassVar[str] = "rating"
    unit = "ratings"

    def __init__(
        self,
        *,
        user: Field | str = "identity",
        item: Field | str = "identity",
        rating: Field | str = "number",
        text: Field | str = "reviews",
        time: Field | str = "moment",
        history: Literal["earlier", "others"] = "earlier",
        loss: Literal["squared", "absolute", "huber", "pairwise"] = "squared",
        negatives: int = 100,
        metrics: Sequence[RecommendationMetric] = ("mse", "mae"),
    ) -> None:
        self.kind = known_loss(loss)
        if history not in ("earlier", "others"):
            raise ValueError(f"history must be 'earlier' or 'others', got {history!r}.")
        check_count("negatives", negatives)
        self.user, self.item = field_of("user", user, Identity), field_of("item", item, Identity)
        self.number = field_of("rating", rating, Number)
        self.text, self.time = field_of("text", text, Reviews), field_of("time", time, Moment)
        self.inputs = {"user": self.user, "item": OptionalField(self.item, role="item"), "time": self.time}
        self.targets = {"rating": self.number}
        self.history, self.negatives = history, negatives
        self.log = ReviewLog([], [], [], [], [])
        self.choose_metrics(metrics)

    @property
    def fields(self) -> dict[str, Field]:
        sides = {"user": self.user, "item": self.item, "rating": self.number}
        return {**sides, "text": self.text, "time": self.time}

    def origin(self, example: Example) -> tuple[float | None, str]:
        return example.get("time"), example["user"]

    def fit(self, examples: Iterable[Example]) -> None:
        for role in ("user", "item", "rating"):
            self.fields[role].fit(example[role] for example in examples)
        self.text.fit(example["text"] or [""] for example in examples)
        rows = [
            (self.user.encode(e["user"]), self.item.encode(e["item"]), self.time.encode(e["time"]), *self._words(e))
            for e in examples
        ]
        self.log = ReviewLog(*zip(*rows, strict=True))

    def _words(self, example: Example) -> tuple[str, list[int]]:
        text = " ".join(example["text"] or ())
        return text, self.text.encode([text])[0][: self.text.max_words]

    def sizes(self) -> dict[str, int | None]:
        limits = {"reviews": self.text.max_reviews, "words": self.text.max_words}
        return {"users": self.user.sizes()["names"], "items": self.item.sizes()["names"], **self.text.sizes(), **limits}

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.log.save(folder)

    def load(self, folder: Path) -> None:
        super().load(folder)
        sizes = {"users": 1 + len(self.user.names), "items": 1 + len(self.item.names), **self.text.sizes()}
        self.log = ReviewLog.load(folder, **sizes)

    # Rows and batches

    def encode(self, example: Example) -> Row:
        time = example.get("time") if self.history == "earlier" else None
        numbers = {"user": self.user.encode(example["user"]), "item": self.item.encode(example["item"])}
        row: Row = dict(numbers)
        for side, other in (SIDES, SIDES[::-1]):
            row[f"{side}_reviews"] = self.log.history(
                side, numbers[side], other=numbers[other], before=time, most=self.text.max_reviews
            )
        return row | ({"rating": self.number.encode(example["rating"])} if "rating" in example else {})

    def prepare(self, model: nn.Module, example: Example) -> Row:
        return self.encode({role: example.get(role) for role in self.inputs})

    def size(self, row: Row) -> tuple[int, ...]:
        return (1,)

    def length(self, example: Example) -> int:
        if example.get("item") is None:  # all items are rated
            return len(self.item.names)
        row = self.encode(example)
        return sum(len(self.log.tokens[n]) for side in SIDES for n in row[f"{side}_reviews"])

    def left_out(self, row: Row) -> str | None:
        return None

    def cut(self, row: Row) -> str | None:
        return None

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        batch = {**self.side("user", rows), **self.side("item", rows)}
        if "rating" in rows[0]:
            batch["rating"] = self.number.pad([row["rating"] for row in rows])["values"]
        return batch

    def side(self, side: Side, rows: Sequence[Row]) -> dict[str, Tensor]:
        """The tensors of the users, or of the items, of several rows."""
        padded = self.text.pad([[self.log.tokens[number] for number in row[f"{side}_reviews"]] for row in rows])
        numbers = torch.tensor([row[side] for row in rows], dtype=torch.long)
        return {side: numbers, f"{side}_words": padded["values"], f"{side}_mask": padded["mask"]}

    def given(self, batch: dict[str, Tensor]) -> list[Tensor]:
        return [batch[name] for name in GIVEN]

    def check(self, model: nn.Module) -> None:
        pass  # the limits of the texts are among the sizes of the model

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        return {}

    def unknown(self, inputs: Sequence[Any], answers: Sequence[Answer] | None = None) -> dict[int, list[str]]:
        found = {}
        for number, value in enumerate(inputs):
            example = self.example(value)
            strange = self.user.unknown(example["user"])
            strange += [] if example.get("item") is None else self.item.unknown(example["item"])
            if strange:
                found[number] = strange
        return found
