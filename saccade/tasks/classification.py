"""Classification: an input gets a label, several labels, or a grade."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.evaluation.figures import Figure
from saccade.evaluation.labels import METRICS, Labelled
from saccade.evaluation.tables import Table
from saccade.fields import Field, Label, Labels, Text, fields
from saccade.interpretation.explorer import Item, Measure, Outcome
from saccade.interpretation.plots import plot_reliability
from saccade.registry import nearest
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Loss, Task, tasks
from saccade.tasks.explaining import RecordOptions, attended, explain_inputs
from saccade.tasks.options import Options

SHOWN = 5
"""Labels whose probabilities an explanation shows."""

LABEL = (
    "What the model answered for this input. Its probabilities are often too confident: see the calibration error "
    "(ece) of an evaluation."
)


@dataclass(frozen=True, kw_only=True)
class ClassificationOptions(Options):
    """How a label is chosen.

    Args:
        top: how many labels to list for each input, the likeliest first.
        threshold: of several labels at once, those with at least this probability are given.
    """

    top: int = 1
    threshold: float = 0.5

    def check(self) -> None:
        if not 1 <= self.top <= 1_000_000:
            raise ValueError(f"top must be from 1 to 1000000, got {self.top}.")
        if not 0.0 < self.threshold < 1.0:
            raise ValueError(f"threshold must be between 0 and 1, got {self.threshold}.")


@tasks.register("classification")
class Classification(Task):
    r"""Chooses a label for each input: a topic, a sentiment, the kind of a node.

    One label is learned by cross-entropy, several at once by a binary cross-entropy for each, and ordered labels by the
    probability of being above each grade:

    .. math:: p(y > k) = \sigma(z_k), \quad k = 1, ..., K - 1

    Args:
        inputs: what is read, by the names of the columns: `{text: {class: text, tokeniser: word}}`. A text by default.
        label: `label` for one of several classes (`{class: label, ordered: true}` for grades such as stars), `labels`
            for any number of them.
        label_smoothing: how much probability training spreads evenly over all classes; of one unordered label only.
        class_weights: how much the examples of each class count in training: "balanced" weighs rare classes more, so
            that all count the same; `{spam: 3, ham: 0.5}` names weights, and classes that it does not name have 1. Of
            several labels at once, "balanced" lets the examples with and without each label count the same, and
            weights are those of the examples that have it.
        metrics: the figures of an evaluation: accuracy, macro_f1, micro_f1, auroc, ece; of ordered labels also
            mean_absolute_error and quadratic_weighted_kappa.

    Reference:
        Ordered labels: Cheng et al. (2008), arXiv:0704.1028.
    """

    options = ClassificationOptions
    explain_options = RecordOptions
    picture = "the reliability of the probabilities"

    def __init__(
        self,
        *,
        inputs: dict[str, Field] | None = None,
        label: Field | str = "label",
        label_smoothing: float = 0.0,
        class_weights: Literal["none", "balanced"] | dict[str, float] = "none",
        metrics: Sequence[str] = ("accuracy", "macro_f1"),
    ) -> None:
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be from 0 to less than 1, got {label_smoothing}.")
        _check_weights(class_weights)
        made = fields.create(label) if isinstance(label, str) else label
        if not isinstance(made, Label):
            raise ValueError(f"label must be the field label or labels, got {label!r}.")
        self.label = made
        self.inputs = dict(inputs) if inputs is not None else {"text": Text(tokeniser="word")}
        if not self.inputs or "label" in self.inputs:
            raise ValueError("inputs must name at least one input, and none may be called label.")
        self.targets = {"label": self.label}
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights
        for metric in metrics:
            if metric not in METRICS:
                raise ValueError(f"Unknown metric {metric!r}.{nearest(metric, METRICS)}")
            if METRICS[metric].of_grades and self.form != "ordered":
                raise ValueError(
                    f"{metric} is a figure of ordered labels: set label to {{class: label, ordered: true}}."
                )
        self.metrics = {name: METRICS[name].higher for name in metrics}

    @property
    def form(self) -> Literal["one", "several", "ordered"]:
        """What is chosen: one label, several, or a grade."""
        return "several" if isinstance(self.label, Labels) else "ordered" if self.label.ordered else "one"

    def sizes(self) -> dict[str, int]:
        return {**self.input_sizes(), "classes": self.label.sizes()["classes"] - (self.form == "ordered")}

    def fit(self, examples: Iterable[Example]) -> None:
        super().fit(examples)
        self.weights()  # which may name a label that there is not

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        logits = self.logits(model, batch).float()
        wanted = batch["label"]
        right = (self._decided(logits) == wanted).float()
        if self.form == "one":
            smoothing = self.label_smoothing if model.training else 0.0
            plain = F.cross_entropy(logits, wanted, reduction="none")
            losses = F.cross_entropy(logits, wanted, reduction="none", label_smoothing=smoothing)
        else:
            targets = wanted if self.form == "several" else above(wanted, logits.shape[1])
            each = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
            plain = losses = each.sum(1)
            right = right.mean(1) if self.form == "several" else right
        if model.training and self.class_weights != "none":
            weights = self.weights().to(logits)
            if self.form == "several":
                losses = (each * torch.where(wanted > 0, weights[0], weights[1])).sum(1)
            else:
                losses = losses * weights[0][wanted]
        count = torch.tensor(len(logits), device=logits.device)
        return Loss(losses.sum(), count, {"accuracy": right.sum(), "loss": plain.detach().sum()})

    def logits(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """What the model makes of the inputs of a batch: (batch, classes)."""
        found: Tensor = model(*self.given(batch))
        return found

    def _decided(self, logits: Tensor) -> Tensor:
        if self.form == "one":
            return logits.argmax(1)
        above_half = logits > 0
        return above_half.float() if self.form == "several" else above_half.sum(1)

    def weights(self) -> Tensor:
        r"""(2, classes): how much training examples count that have each label, and examples that do not.

        Balanced, with n_k of n examples in class k of K:

        .. math:: w_k = \frac{n}{K n_k}, \quad \text{of several labels: } \frac{n}{2 n_k}, \; \frac{n}{2 (n - n_k)}
        """
        names = self.label.names
        if isinstance(self.class_weights, dict):
            unknown = next((name for name in self.class_weights if name not in names), None)
            if unknown is not None:
                raise ValueError(f"class_weights names {unknown!r}, which is not a label.{nearest(unknown, names)}")
            own = torch.tensor([float(self.class_weights.get(name, 1.0)) for name in names])
            return torch.stack([own, torch.ones_like(own)])
        counts = torch.tensor([self.label.counts[name] for name in names], dtype=torch.float64)
        kinds = 2 if self.form == "several" else len(names)
        sides = torch.stack([counts, self.label.examples - counts]).clamp(min=1.0)
        return self.label.examples / (kinds * sides)

    def probabilities(self, logits: Tensor) -> Tensor:
        """(batch, classes): of each class."""
        if self.form == "one":
            return logits.float().softmax(1)
        single = logits.float().sigmoid()
        if self.form == "several":
            return single
        # Above each grade, which may cross: probabilities of grades are differences, never below 0.
        edges = torch.cat([torch.ones_like(single[:, :1]), single, torch.zeros_like(single[:, :1])], dim=1)
        grades = (edges[:, :-1] - edges[:, 1:]).clamp(min=0.0)
        return grades / grades.sum(1, keepdim=True)

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: ClassificationOptions
    ) -> list[Answer]:
        with attended(self, model, examples) as looked:
            probabilities = self.probabilities(self.logits(model, batch)).cpu()
        answers = []
        for row, several in enumerate(probabilities.tolist()):
            ranked = sorted(range(len(several)), key=lambda n: -several[n])
            details = {"probabilities": dict(zip(self.label.names, several, strict=True))}
            if self.form == "several":
                chosen = [self.label.names[n] for n in range(len(several)) if several[n] >= options.threshold]
                value: Any = chosen
                score = min(max(p, 1.0 - p) for p in several)
            else:
                value, score = self.label.names[ranked[0]], several[ranked[0]]
            others = [Answer(self.label.names[n], several[n]) for n in ranked[: options.top]] if options.top > 1 else []
            attention = looked.of(row, self.label.show(value) or "(none)")
            answers.append(Answer(value, score, attention, others, details))
        return answers

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        return self._labelled(answers, examples).figures(list(self.metrics))

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        return self._labelled(answers, examples).tables()

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        plot_reliability(self._labelled(answers, examples).reliability(), path)

    def _labelled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> Labelled:
        """Answers beside the truth; both may name labels that this training did not see, in cross-validation."""
        wanted = [example["label"] for example in examples]
        given = [answer.details["probabilities"] for answer in answers]
        strange = (name for label in wanted for name in self.label.strata(label))
        names = self.label.known_with({*strange, *(name for each in given for name in each)})
        probabilities = [[each.get(name, 0.0) for name in names] for each in given]
        return Labelled.of([answer.value for answer in answers], wanted, probabilities, names, self.form)

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        return explain_inputs(self, model, examples, answers, describe=self._describe, **options)

    def _describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        true = example.get("label", [])
        wanted = [true] if isinstance(true, str) else true
        ranked = sorted(answer.details["probabilities"].items(), key=lambda item: -item[1])
        shown = [(name, p) for number, (name, p) in enumerate(ranked) if number < SHOWN or name in wanted]
        outcomes = [Outcome(label=name, probability=p, gold=name in wanted) for name, p in shown]
        return [Measure(name="label", value=answer.text or "(none)", meaning=LABEL)], outcomes


def _check_weights(weights: Any) -> None:
    if isinstance(weights, dict):
        for name, weight in weights.items():
            if not 0.0 <= weight < math.inf:
                raise ValueError(f"class_weights must be 0 or more, got {weight} for {name!r}.")
    elif weights not in ("none", "balanced"):
        raise ValueError(f"class_weights must be 'none', 'balanced' or weights by name, got {weights!r:.60}.")


def above(grades: Tensor, count: int) -> Tensor:
    """(batch, count): 1.0 for each of the `count` boundaries that a grade is above."""
    return (grades.unsqueeze(1) > torch.arange(count, device=grades.device)).float()
