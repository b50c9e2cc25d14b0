"""Recommendation: the rating that a user would give to an item, from the reviews of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from saccade.evaluation.figures import Figure
from saccade.evaluation.numbers import HIGHER_IS_BETTER, score_numbers
from saccade.interpretation.explorer import Item, Map
from saccade.interpretation.recording import Trace, record
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, tasks
from saccade.tasks.explaining import RecordOptions, explain_inputs, recorded
from saccade.tasks.recommendation.data import GIVEN, ReviewedRating
from saccade.tasks.recommendation.log import SIDES
from saccade.tasks.recommendation.options import RecommendationOptions
from saccade.tasks.recommendation.ranking import BATCH, RANKING, rankings, recommended
from saccade.tasks.recommendation.reasons import SideLook, looked_at

MOST_EXPORTED = 200_000
"""The maximum number of reviews in an export: tens of megabytes of JSON."""


@tasks.register("recommendation")
class Recommendation(ReviewedRating):
    r"""Predicts the rating that a user would give to an item, and ranks items for a user.

    The training data consists of reviews: user, item, rating and, if available, text and time. A model reads the
    numbers of user and item, the reviews by the user and the reviews of the item, all from the training data. It never
    reads *the review to be predicted*, or any other by this user of this item.

    Cold start: a user or item that is not in the training data, or has no reviews that may be read yet, has no reviews
    and, in models that use names, bias 0 and factors 0. If neither is known, the answer is the mean rating.

    Args:
        user, item: the columns of their names.
        rating: the column of the ratings.
        text: the column of the reviews, and how they are read.
        time: the column of the times.
        history: which reviews may be read: "earlier", only those from before the rating to be predicted, if it has a
            time; or "others", all but the one to be predicted.
        loss: "squared", "absolute", "huber" or "pairwise", as for the task rating.
        negatives: for sampled_ndcg@10 and sampled_recall@10, how many items are drawn for each user, besides those that
            are held out.
        metrics: the figures of an evaluation: those of the task rating (mse, mae, ...), and ndcg@10 and recall@10
            against all items that the user has not reviewed, or against a sample: sampled_ndcg@10, sampled_recall@10.
    """

    options = RecommendationOptions
    explain_options = RecordOptions
    known_metrics = HIGHER_IS_BETTER | dict.fromkeys(RANKING, True)
    named: ClassVar[tuple[str, ...]] = ("user", "item")

    def predict(self, model: nn.Module, inputs: Sequence[Any], *, batch_size: int = 64, **options: Any) -> list[Answer]:
        """The rating of each input; if it names no item, the items recommended to its user, the best first."""
        asked = self.options.of(options)
        examples = [self.example(value) for value in inputs]
        pairs = [number for number, example in enumerate(examples) if example.get("item") is not None]
        rated = super().predict(model, [examples[number] for number in pairs], batch_size=batch_size, **options)
        found = dict(zip(pairs, rated, strict=True))
        for number, example in enumerate(examples):
            if number not in found:
                found[number] = recommended(self, model, example, asked, batch_size)
        return [found[number] for number in range(len(examples))]

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: Any
    ) -> list[Answer]:
        with record(model) as trace:
            scores = self.ratings(model, batch).tolist()
        looked = self.looked(trace, batch, examples)
        cold = (batch["user"] == 0) & (batch["item"] == 0)
        answers = []
        for row, score in enumerate(scores):
            score = 0.0 if cold[row] else score
            sides = looked[row]
            value = self.number.decode(score)
            shown = (sides[side].attended(side, self.number.show(value)) for side in reversed(SIDES))
            attention = next((each for each in shown if each is not None), None)
            reasons = {side: reason for side in SIDES if (reason := sides[side].reason()) is not None}
            details: dict[str, Any] = {"reasons": reasons} if reasons else {}
            unread = [side for side in SIDES if not sides[side].texts]
            details |= {"cold": unread} if unread else {}
            answers.append(Answer(value, score, attention, details=details))
        return answers

    def looked(
        self, trace: Trace, batch: Mapping[str, Tensor], examples: Sequence[Example]
    ) -> list[dict[str, SideLook]]:
        """What a model attended to on both sides, for each example of a batch."""
        found: list[dict[str, SideLook]] = [{} for _ in examples]
        rows = [self.encode({role: example.get(role) for role in self.inputs}) for example in examples]
        for side in SIDES:
            texts = [[self.log.texts[number] for number in row[f"{side}_reviews"]] for row in rows]
            for own, looked in zip(found, looked_at(self.text, side, texts, trace, batch[f"{side}_mask"]), strict=True):
                own[side] = looked
        return found

    def columns(self, options: Any) -> list[str]:
        return ["answer", "rating", "reasons"]

    def cells(self, answer: Answer, options: Any) -> list[str]:
        if "rating" not in answer.details:
            return [answer.text]
        quoted = [
            f'{side}: "{reason["review"]}" ({", ".join(reason["words"])})'
            for side, reason in answer.details.get("reasons", {}).items()
        ]
        return [answer.text, f"{answer.details['rating']:.2f}", " | ".join(quoted)]

    def looking(self, trace: Trace, batch: Mapping[str, Tensor]) -> None:
        return None

    def portable(self, model: nn.Module) -> dict[str, Any]:
        if len(self.log) > MOST_EXPORTED:
            most = f"at most {MOST_EXPORTED:,} fit into an export"
            raise ValueError(f"its answers need the {len(self.log):,} reviews of the training data, and {most}")
        scale = {"mean": self.number.mean, "deviation": self.number.deviation}
        read = {"max_reviews": self.text.max_reviews, "earlier": self.history == "earlier"}
        tokeniser = {"tokeniser": self.text.portable()["tokeniser"]}
        return {"kind": "recommendation", **scale, **read, **tokeniser, "reviews": self.log.portable()}

    def stand_ins(self, count: int, length: int) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for side, own, more in (("user", self.user, 0), ("item", self.item, 6)):
            found[side] = torch.arange(count) % own.sizes()["names"]
            reviews, words = min(length + more, self.text.max_reviews), min(length + more + 3, self.text.max_words)
            found[f"{side}_words"] = torch.randint(1, self.text.sizes()["vocab"], (count, reviews, words))
            found[f"{side}_mask"] = torch.rand(count, reviews, words) < 0.8
        return {name: found[name] for name in GIVEN}

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        wanted = [example["rating"] for example in examples]
        names = [name for name in self.metrics if name in HIGHER_IS_BETTER]
        return score_numbers([answer.value for answer in answers], wanted, names)

    def measure(self, model: nn.Module, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        found = self.score(answers, examples)
        wanted = [name for name in self.metrics if name in RANKING]
        return found | (rankings(self, model, examples, wanted) if wanted else {})

    def remarks(self, answers: Sequence[Answer]) -> list[str]:
        cold = {side: sum(side in answer.details.get("cold", ()) for answer in answers) for side in SIDES}
        found = [
            f"{count:,} of {len(answers):,} ratings are of a{'n' * (side == 'item')} {side} without a review to read."
            for side, count in cold.items()
            if count
        ]
        done = sum("reviewed_all" in answer.details for answer in answers)
        nothing = f"{done:,} of {len(answers):,} users have reviewed every item: set seen to recommend those again."
        return [*found, nothing] if done else found

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        """What the model attended to: an item for the reviews by the user, and one for the reviews of the item.

        An input without an item is explained for each of the items recommended.
        """
        own: dict[str, Any] = {name: options.pop(name) for name in ("top", "seen") if name in options}
        whole: list[Example] = []
        for example in examples:
            if example.get("item") is not None:
                whole.append(example)
            else:
                best = recommended(self, model, example, self.options.of(own), BATCH)
                if not best.alternatives:
                    raise ValueError(f"{example['user']!r:.60} has reviewed every item: set seen to explain those.")
                whole += [{**example, "item": each.value} for each in best.alternatives]
        known = answers if answers is not None and len(whole) == len(examples) else self.predict(model, whole)
        pairs = zip(whole, known, strict=True)
        return [item for pair in pairs for item in self._explained(model, *pair, options)]

    def _explained(self, model: nn.Module, example: Example, answer: Answer, options: dict[str, Any]) -> list[Item]:
        batch = self.collate([self.prepare(model, example)])
        (looked,) = self.looked(recorded(model, *self.given(batch)), batch, [example])
        true = f" (true: {self.number.show(example['rating'])})" if "rating" in example else ""
        shown = {side: looked[side].maps(side, answer.text + true) for side in SIDES}
        found = []
        for side in [side for side in SIDES if shown[side]] or SIDES[:1]:  # one without maps says what is missing
            look = partial(_shown, shown[side])
            (item,) = explain_inputs(self, model, [example], [answer], describe=self._describe, look=look, **options)
            by = "by the user" if side == "user" else "of the item"
            found.append(replace(item, title=f"{item.title}{true}, reviews {by}"))
        return found


def _shown(maps: list[Map], model: nn.Module, example: Example, answer: Answer) -> list[Map]:
    return maps
