"""A label, or several, for each visit of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.evaluation import labels
from saccade.fields import Field, Label, Visits
from saccade.fields.looking import Looking, last_self_attention
from saccade.interpretation.explorer import Measure, Outcome
from saccade.interpretation.recording import Trace
from saccade.tasks.answers import Answer, Attended
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.contributing import Linked
from saccade.tasks.forms import ClassificationOptions, Form
from saccade.tasks.outcomes import outcomes_of

ANSWERS = "What the model answered at each visit, from that visit and those before it."
WRONG = "The visits where the data has a different outcome."


class EachVisit(Form):
    """Each visit of the first input has its own label, decided from the visits up to it.

    A model returns logits (batch, visits, classes). Figures are over all visits whose outcome is known; their intervals
    come from resampling whole records.

    Args:
        label: the field of the outcomes.
        inputs: the fields that the model reads.
        one: how the outcome of one visit is decided.
    """

    unit = "visits"

    def __init__(self, label: Label, inputs: Mapping[str, Field], one: Form) -> None:
        super().__init__(label)
        self.role, visits = next(iter(inputs.items()))
        if not isinstance(visits, Visits):
            raise ValueError(f"outcomes at each visit need visits, but the first input is {type(visits).__name__}.")
        self.visits, self.one = visits, one
        self.name = f"visits_{one.name}"  # type: ignore[misc] # of this form
        self.several = one.several  # type: ignore[misc]

    def sizes(self) -> dict[str, Any]:
        return {"each_visit": True}

    def losses(
        self, logits: Tensor, wanted: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
        return self.one.losses(logits, wanted, smoothing=smoothing, weights=weights)

    def right(self, logits: Tensor, wanted: Tensor) -> Tensor:
        return self.one.right(logits, wanted)

    def probabilities(self, logits: Tensor) -> Tensor:
        return self.one.probabilities(logits)

    def linked(self) -> Linked:
        return self.one.linked()

    def decide(self, probabilities: Sequence[float], options: ClassificationOptions) -> tuple[Any, float]:
        return self.one.decide(probabilities, options)

    def check_example(self, example: Example, cell: Cell) -> None:
        if "label" in example and len(example["label"]) != len(example[self.role]["visits"]):
            visits, given = len(example[self.role]["visits"]), len(example["label"])
            counted = f"{visits} visit{'s' * (visits != 1)} but {given} outcome{'s' * (given != 1)}"
            raise cell.bad(f"the {self.role} has {counted}", "Give one for each visit, null where it is not known.")

    def complete(self, row: Row, example: Example) -> Row:
        if "label" not in row:
            return row
        return {**row, "label": row["label"][-self.visits.max_visits :]}  # of the visits that are read

    def left_out(self, row: Row) -> str | None:
        known = "label" not in row or any(each not in (-1, [-1]) for each in row["label"])
        return None if known else "record without a known outcome"

    def wanted(self, batch: Mapping[str, Tensor]) -> Tensor:
        return batch["label"][batch["label_mask"]]

    def logits(self, found: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        if found.dim() != 3:
            raise ValueError(
                f"outcomes at each visit need a model that returns (batch, visits, classes), not {tuple(found.shape)}."
            )
        return found[batch.get("label_mask", batch[f"{self.role}_mask"])].float()

    def answers(
        self,
        task: Task,
        model: nn.Module,
        batch: dict[str, Tensor],
        examples: Sequence[Example],
        options: ClassificationOptions,
    ) -> list[Answer]:
        if options.top > 1:
            raise ValueError("top lists several labels of one input, but every visit has its own: leave it out.")
        found, weights = self.of_positions(task, model, batch)
        counts = batch[f"{self.role}_mask"].sum(1).tolist()
        answers = []
        for row, several in enumerate(found.split(counts)):
            decided = [self.decide(each, options) for each in several.tolist()]
            names = self.visits.position_names(examples[row][self.role])
            attention = None
            if weights is not None:
                attention = Attended(weights[row, : len(names), : len(names)], names, names)
            each = [dict(zip(self.label.names, probabilities, strict=True)) for probabilities in several.tolist()]
            details = {"visits": names, "probabilities": each}
            surest = min(score for _, score in decided)
            answers.append(Answer([value for value, _ in decided], surest, attention, details=details))
        return answers

    def looking(self, task: Task, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
        """The last attention of visits to visits."""
        return last_self_attention(trace, self.role, len(batch[self.role]))

    def items(self, examples: Sequence[Example]) -> list[int]:
        return [sum(each is not None for each in self._outcomes(example)) for example in examples]

    def _outcomes(self, example: Example) -> Sequence[Any]:
        """Those of the visits that are read."""
        found: Sequence[Any] = example["label"][-self.visits.max_visits :]
        return found

    def _labelled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> labels.Labelled:
        found = [
            (value, probabilities, wanted)
            for answer, example in zip(answers, examples, strict=True)
            for value, probabilities, wanted in zip(
                answer.value, answer.details["probabilities"], self._outcomes(example), strict=True
            )
            if wanted is not None
        ]
        if not found:
            raise ValueError("none of the examples has a visit with a known outcome.")
        predicted, given, true = map(list, zip(*found, strict=True))
        return self._compared(predicted, given, true)

    def describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        """The answers to all visits, and the probabilities at the last."""
        visits = answer.details["visits"]
        shown = " | ".join(f"{name}: {self._shown(value)}" for name, value in zip(visits, answer.value, strict=True))
        measures = [Measure(name="answers", value=shown, meaning=ANSWERS)]
        last: Any = None
        if "label" in example:
            true = self._outcomes(example)
            last = true[-1]
            each = zip(visits, answer.value, true, strict=True)
            wrong = [f"{name}: {self._shown(t)}" for name, value, t in each if t is not None and t != value]
            measures.append(Measure(name="wrong", value=" | ".join(wrong) or "none", meaning=WRONG))
        return measures, outcomes_of(
            answer.details["probabilities"][-1], [last] if isinstance(last, str) else last or ()
        )

    def _shown(self, value: Any) -> str:
        return value if isinstance(value, str) else ", ".join(value) or "(none)"
