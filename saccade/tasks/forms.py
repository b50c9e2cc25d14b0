"""The forms of classification: what is chosen, and everything that follows from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.evaluation import labels
from saccade.evaluation.bootstrap import bootstrap, rows_of
from saccade.evaluation.figures import Figure
from saccade.evaluation.tables import Table
from saccade.fields import Label
from saccade.fields.looking import Looking
from saccade.interpretation.explorer import Map, Measure, Outcome
from saccade.interpretation.plots import plot_reliability
from saccade.interpretation.recording import Trace, record
from saccade.tasks.answers import NOWHERE, Answer
from saccade.tasks.arguments import chosen_metrics
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.contributing import Linked, with_contributions
from saccade.tasks.explaining import attended, look_at, looking
from saccade.tasks.options import Options
from saccade.tasks.outcomes import outcomes_of
from saccade.tasks.pointing import score_pointing
from saccade.tasks.rationales import rationale_of, score_rationales

LABEL = (
    "What the model answered for this input. Its probabilities are often too confident: see the calibration error "
    "(ece) of an evaluation."
)


@dataclass(frozen=True, kw_only=True)
class ClassificationOptions(Options):
    """How a label is chosen.

    Args:
        top: how many labels to list for each input, the most probable first; not for tags.
        threshold: if an input can have several labels, the minimum probability of a label; with a positive label, the
            minimum probability for it to be the answer.
    """

    top: int = 1
    threshold: float = 0.5

    @property
    def several(self) -> bool:
        return self.top > 1

    def check(self) -> None:
        if not 1 <= self.top <= 1_000_000:
            raise ValueError(f"top must be from 1 to 1000000, got {self.top}.")
        if not 0.0 < self.threshold < 1.0:
            raise ValueError(f"threshold must be between 0 and 1, got {self.threshold}.")


class Form:
    """What classification chooses: one label, several, a grade, or a label for each word.

    By default it answers for an input as a whole. A new form sets `name` and implements `losses`, `right` and
    `probabilities`.

    Args:
        label: the field of the labels.
    """

    name: ClassVar[str]
    """What exported models call it."""

    unit: ClassVar[str] = "examples"
    picture: ClassVar[str] = "the reliability of the probabilities"

    several: ClassVar[bool] = False
    """Whether an item can have any number of labels, each decided on its own."""

    def __init__(self, label: Label) -> None:
        self.label = label

    def metrics(self, names: Sequence[str]) -> dict[str, bool]:
        """The metrics that a user named, and whether higher is better."""
        chosen = chosen_metrics(names, labels.HIGHER_IS_BETTER)
        for name in names:
            if labels.METRICS[name].of_grades and not self.label.ordered:
                raise ValueError(f"{name} is a figure of ordered labels: set label to {{class: label, ordered: true}}.")
            if labels.METRICS[name].of_decisions and self.label.positive is None and not self.several:
                raise ValueError(
                    f"{name} is a figure of one class: say which, as in label={{class: label, positive: NAME}}."
                )
        return chosen

    def outputs(self) -> int:
        """How many logits a model gives for each item."""
        return self.label.sizes()["classes"]

    def sizes(self) -> dict[str, Any]:
        """The arguments of a model that follow from the form, besides `classes`."""
        return {}

    # Items are inputs or words: (items, outputs) logits, and what is wanted as the field pads it.

    def losses(
        self, logits: Tensor, wanted: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
        """(items,): the loss of each.

        Args:
            logits: (items, outputs).
            wanted: (items,); (items, classes) if there may be several labels.
            smoothing: the probability that is spread over all classes, if exactly one is right.
            weights: (2, classes): how much items with each label count, and items without it, which only matters if
                there may be several.
        """
        raise NotImplementedError

    def right(self, logits: Tensor, wanted: Tensor) -> Tensor:
        """(items,): 1.0 where the decision is right; with several labels, the share of right decisions."""
        raise NotImplementedError

    def probabilities(self, logits: Tensor) -> Tensor:
        """(items, classes)."""
        raise NotImplementedError

    def linked(self) -> Linked:
        """What the logits mean, for explanations by contributions."""
        raise NotImplementedError

    def decide(self, probabilities: Sequence[float], options: ClassificationOptions) -> tuple[Any, float]:
        """An answer and its score."""
        positive = self.label.positive_class
        if positive is not None:
            best = positive if probabilities[positive] >= options.threshold else 1 - positive
        else:
            best = max(range(len(probabilities)), key=probabilities.__getitem__)
        return self.label.names[best], probabilities[best]

    def balanced(self) -> Tensor:
        r"""(2, classes): the weights of items with and without each label, with n_k of n items in class k of K.

        .. math:: w_k = \frac{n}{K n_k}, \quad \text{of several labels: } \frac{n}{2 n_k}, \; \frac{n}{2 (n - n_k)}
        """
        names = self.label.names
        counts = torch.tensor([self.label.counts[name] for name in names], dtype=torch.float64)
        sides = torch.stack([counts, self.label.examples - counts]).clamp(min=1.0)
        return self.label.examples / ((2 if self.several else len(names)) * sides)

    # What a form adds to the data: nothing by default.

    def check_example(self, example: Example, cell: Cell) -> None:
        """Raises `cell.bad(problem, fix)` if a label does not fit its input."""

    def complete(self, row: Row, example: Example) -> Row:
        """An encoded row, with whatever else the form needs."""
        return row

    def left_out(self, row: Row) -> str | None:
        """Why training cannot use a row, or None."""
        return None

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """The tensors of a batch that belong to no field."""
        return {}

    def wanted(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The labels of all items of a batch."""
        return batch["label"]

    def logits(self, found: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """(items, outputs): those of all items of a batch, from what the model returned."""
        if found.dim() != 2:
            raise ValueError(f"a label needs a model that returns (batch, classes), not {tuple(found.shape)}.")
        return found.float()

    # Answers

    def answers(
        self,
        task: Task,
        model: nn.Module,
        batch: dict[str, Tensor],
        examples: Sequence[Example],
        options: ClassificationOptions,
    ) -> list[Answer]:
        """The answer to each example of a batch."""
        with attended(task, model, batch, examples) as looked:
            found = self.probabilities(self.logits(model(*task.given(batch)), batch)).cpu()
        names, answers = self.label.names, []
        for row, several in enumerate(found.tolist()):
            value, score = self.decide(several, options)
            ranked = sorted(range(len(several)), key=lambda n: -several[n])[: options.top] if options.top > 1 else []
            attention = looked.of(row, self.label.show(value) or "(none)")
            details: dict[str, Any] = {"probabilities": dict(zip(names, several, strict=True))}
            details |= rationale_of(task, attention, examples[row])
            answers.append(Answer(value, score, attention, [Answer(names[n], several[n]) for n in ranked], details))
        return answers

    def of_positions(self, task: Task, model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """For forms that label positions: the probabilities of all items, and the weights (batch, queries, keys)."""
        with record(model) as trace:
            found = self.probabilities(self.logits(model(*task.given(batch)), batch)).cpu()
        seen = self.looking(task, trace, batch)
        return found, None if seen is None else seen.look.weights(trace, len(batch[seen.keys])).cpu()

    def empty_answer(self) -> Answer:
        """The answer to an empty input: no label."""
        return Answer([] if self.several else None, 0.0, NOWHERE, details={"probabilities": {}})

    def looking(self, task: Task, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
        """The attention that the answers to a batch show."""
        return looking(task, trace, batch)

    def score(self, task: Task, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The task's figures of answers."""
        figures = self._labelled(answers, examples).figures(list(task.metrics))
        reasons = score_rationales(task, answers, examples)
        figures |= {f"rationale_{name}" if name in figures else name: each for name, each in reasons.items()}
        return figures | score_pointing(task, answers, examples)

    def intervals(
        self, task: Task, answers: Sequence[Answer], examples: Sequence[Example], samples: int
    ) -> dict[str, tuple[float, float]]:
        """The intervals of the task's figures, by resampling examples; see `bootstrap`."""
        whole, metrics = self._labelled(answers, examples), list(task.metrics)
        counts = self.items(examples)

        def figures(chosen: NDArray[np.int64]) -> dict[str, float]:
            rows = chosen if counts is None else rows_of(counts, chosen)
            return {name: figure.value for name, figure in whole.take(rows).figures(metrics).items()}

        return bootstrap(figures, len(examples), samples)

    def items(self, examples: Sequence[Example]) -> list[int] | None:
        """How many items with a known label each example has; None if each is one item."""
        return None

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        """Details of an evaluation."""
        return self._labelled(answers, examples).tables()

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        """Draws the picture of an evaluation."""
        plot_reliability(self._labelled(answers, examples).reliability(), path)

    def _labelled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> labels.Labelled:
        """Answers with the true labels."""
        given = [answer.details["probabilities"] for answer in answers]
        return self._compared([answer.value for answer in answers], given, [example["label"] for example in examples])

    def _compared(
        self, predicted: Sequence[Any], given: Sequence[Mapping[str, float]], wanted: Sequence[Any]
    ) -> labels.Labelled:
        """Items with the true labels; in cross-validation, both may name labels that this training did not see.

        Args:
            predicted: a label for each item, or a list of labels.
            given: the probabilities of each item, by label.
            wanted: the true labels.
        """
        strange = (name for label in wanted for name in ([label] if isinstance(label, str) else label))
        names = self.label.known_with({*strange, *(name for each in given for name in each)})
        probabilities = [[each.get(name, 0.0) for name in names] for each in given]
        return labels.Labelled.of(
            predicted, wanted, probabilities, names, several=self.several, positive=self.label.positive
        )

    def look(self, task: Task, model: nn.Module, example: Example, answer: Answer) -> list[Map]:
        """The maps of an explanation: every attention over the input, and the contributions of codes."""
        return with_contributions(self, task, model, example, answer, look_at(task, model, example, answer))

    def describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        """What an explanation says about an answer."""
        wanted = self.label.strata(example["label"]) if "label" in example else ()
        measures = [Measure(name="label", value=answer.text or "(none)", meaning=LABEL)]
        return measures, outcomes_of(answer.details["probabilities"], wanted)
