"""Rating: predicting a number for each input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.data.cell import Cell
from saccade.evaluation.figures import Figure
from saccade.evaluation.numbers import HIGHER_IS_BETTER, score_numbers
from saccade.fields import Field, Number, Text
from saccade.fields.looking import Looking
from saccade.interpretation.explorer import Item, Measure, Outcome
from saccade.interpretation.recording import Trace
from saccade.models import costs_of
from saccade.registry import nearest
from saccade.tasks.answers import NOWHERE, Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Loss, Task, tasks
from saccade.tasks.explaining import RecordOptions, attended, explain_inputs, looking
from saccade.tasks.limits import most_tokens
from saccade.tasks.metric_names import RatingMetric
from saccade.tasks.pointing import score_pointing
from saccade.tasks.rationales import check_evidence, extras, rationale_of, score_rationales
from saccade.tasks.several import shared_vocabularies

LOSSES = ("squared", "absolute", "huber", "pairwise")

NUMBER = "What the model answered for this input, in the unit of the training data."


@tasks.register("rating")
class Rating(Task):
    r"""Predicts a number for each input: a price, a score, a duration; or learns to rank inputs.

    Numbers are scaled to mean 0 and standard deviation 1, so that the loss does not depend on their unit. The pairwise
    loss only learns the order, from all pairs of a batch with different targets:

    .. math:: \sum_{y_i > y_j} \log(1 + \exp(z_j - z_i))

    The `score` of an answer is the prediction on that scale: how many standard deviations it lies above the mean of the
    training data. Sort by it to rank answers. It does not say how certain the model is.

    Args:
        inputs: what is read, by the names of the columns: `{text: {class: text, tokeniser: word}}`. A text by default.
        number: the column of the numbers.
        joint: whether texts with equal tokenisers share one vocabulary, learned from all of them.
        loss: "squared", "absolute" (less affected by outliers), "huber" (squared up to one standard deviation, absolute
            beyond), or "pairwise", which makes only the order of the predictions meaningful.
        evidence: what people marked in an input, if `data.columns` names such a column. Evaluations compare it with
            what the model picked or attended to.
        metrics: the figures of an evaluation: mse, rmse, mae, r2, pearson, spearman, pairwise_accuracy.

    Reference:
        The pairwise loss: Burges et al. (2005), "Learning to rank using gradient descent".
    """

    explain_options = RecordOptions
    known_metrics = HIGHER_IS_BETTER

    compared = True
    role: ClassVar[str] = "number"
    """The role of the numbers."""

    def __init__(
        self,
        *,
        inputs: dict[str, Field] | None = None,
        number: Field | str = "number",
        joint: bool = True,
        loss: Literal["squared", "absolute", "huber", "pairwise"] = "squared",
        evidence: Field | str = "evidence",
        metrics: Sequence[RatingMetric] = ("rmse", "mae", "r2", "spearman"),
    ) -> None:
        self.kind = known_loss(loss)
        self.number = field_of("number", number, Number)
        self.inputs = dict(inputs) if inputs is not None else {"text": Text(tokeniser="word")}
        if not self.inputs or "number" in self.inputs:
            raise ValueError("inputs must name at least one input, and none may be called number.")
        self.shared = shared_vocabularies(self.inputs) if joint else {}
        self.targets = {"number": self.number}
        self.extras = extras(self.inputs, evidence)
        self.choose_metrics(metrics)

    def sizes(self) -> dict[str, int | None]:
        return {**self.input_sizes(), "classes": 1}

    def check_example(self, example: Example, cell: Cell) -> None:
        check_evidence(self, example, cell)

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        wanted = batch[self.role]
        found = costs_of(model, self.given(batch), lambda ratings: self._losses(ratings.squeeze(1).float(), wanted))
        ratings = found.logits.squeeze(1).float()
        parts = {name: figure.sum() for name, figure in found.figures.items()}
        count = len(ratings)
        if self.kind == "pairwise":
            margins = (ratings.unsqueeze(1) - ratings)[wanted.unsqueeze(1) > wanted]
            parts["accuracy"] = (margins > 0).sum()
            count = len(margins)
        parts["loss"] = (self._losses(ratings, wanted) + found.penalty).detach().sum()
        return Loss(found.total.sum(), torch.tensor(count, device=ratings.device), parts)

    def _losses(self, ratings: Tensor, wanted: Tensor) -> Tensor:
        """The loss of each example; that of a pair is shared by its two examples."""
        if self.kind == "pairwise":
            pairs = F.softplus(ratings - ratings.unsqueeze(1)) * (wanted.unsqueeze(1) > wanted)
            return (pairs.sum(0) + pairs.sum(1)) / 2
        losses: dict[str, Callable[..., Tensor]] = {
            "squared": F.mse_loss,
            "absolute": F.l1_loss,
            "huber": F.huber_loss,
        }
        return losses[self.kind](ratings, wanted, reduction="none")

    def ratings(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """(batch,): the predictions, in deviations from the mean."""
        found: Tensor = model(*self.given(batch))
        return found.squeeze(1).float()

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: Any
    ) -> list[Answer]:
        with attended(self, model, batch, examples) as looked:
            scores = self.ratings(model, batch).tolist()
        answers = []
        for row, score in enumerate(scores):
            value = self.number.decode(score)
            attention = looked.of(row, self.number.show(value))
            answers.append(Answer(value, score, attention, details=rationale_of(self, attention, examples[row])))
        return answers

    def looking(self, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
        return looking(self, trace, batch)

    def empty_answer(self) -> Answer:
        return Answer(None, 0.0, NOWHERE)

    def portable(self, model: nn.Module) -> dict[str, Any]:
        scale = {"mean": self.number.mean, "deviation": self.number.deviation}
        return {"kind": "rating", **scale, "most": most_tokens(model)}

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        wanted = [example[self.role] for example in examples]
        figures = score_numbers([answer.value for answer in answers], wanted, list(self.metrics))
        return figures | score_rationales(self, answers, examples) | score_pointing(self, answers, examples)

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        return explain_inputs(self, model, examples, answers, describe=self._describe, **options)

    def _describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        measures = [Measure(name=self.role, value=answer.text, meaning=NUMBER)]
        if self.role in example:
            shown = self.number.show(example[self.role])
            meaning = "The value in the data for this input."
            measures.append(Measure(name=f"true {self.role}", value=shown, meaning=meaning))
        return measures, []


def known_loss(loss: str) -> str:
    """The loss that a user named; raises for an unknown name."""
    if loss not in LOSSES:
        raise ValueError(f"Unknown loss {loss!r}.{nearest(loss, LOSSES)}")
    return loss
