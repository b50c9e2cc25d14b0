"""Classification: an input gets a label, several labels, or a grade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.evaluation.figures import Figure
from saccade.evaluation.labels import HIGHER_IS_BETTER, score_labels
from saccade.fields import Field, Label, Labels, Text, fields
from saccade.interpretation.explorer import Item, Measure, Outcome
from saccade.models import costs_of
from saccade.registry import nearest
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Loss, Task, tasks
from saccade.tasks.explaining import RecordOptions, attended, explain_inputs
from saccade.tasks.options import Options
from saccade.tasks.rationales import extras, rationale_of, score_rationales

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
        class_weights: "balanced" weighs rare classes more, so that all classes count the same in training.
        evidence: what people marked in the first input, if `columns` names a column of that role: evaluations compare
            it with what the model picked or attended to.
        metrics: the figures of an evaluation: accuracy, macro_f1, micro_f1, auroc, ece, mean_absolute_error.

    Reference:
        Ordered labels: Cheng et al. (2008), arXiv:0704.1028.
    """

    options = ClassificationOptions
    explain_options = RecordOptions

    def __init__(
        self,
        *,
        inputs: dict[str, Field] | None = None,
        label: Field | str = "label",
        label_smoothing: float = 0.0,
        class_weights: Literal["none", "balanced"] = "none",
        evidence: Field | str = "evidence",
        metrics: Sequence[str] = ("accuracy", "macro_f1"),
    ) -> None:
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be from 0 to less than 1, got {label_smoothing}.")
        if class_weights not in ("none", "balanced"):
            raise ValueError(f"class_weights must be 'none' or 'balanced', got {class_weights!r}.")
        for metric in metrics:
            if metric not in HIGHER_IS_BETTER:
                raise ValueError(f"Unknown metric {metric!r}.{nearest(metric, HIGHER_IS_BETTER)}")
        made = fields.create(label) if isinstance(label, str) else label
        if not isinstance(made, Label):
            raise ValueError(f"label must be the field label or labels, got {label!r}.")
        self.label = made
        self.inputs = dict(inputs) if inputs is not None else {"text": Text(tokeniser="word")}
        if not self.inputs or "label" in self.inputs:
            raise ValueError("inputs must name at least one input, and none may be called label.")
        self.targets = {"label": self.label}
        self.extras = extras(self.inputs, evidence)
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights
        self.metrics = {name: HIGHER_IS_BETTER[name] for name in metrics}

    @property
    def form(self) -> Literal["one", "several", "ordered"]:
        """What is chosen: one label, several, or a grade."""
        return "several" if isinstance(self.label, Labels) else "ordered" if self.label.ordered else "one"

    def sizes(self) -> dict[str, int]:
        return {**self.input_sizes(), "classes": self.label.sizes()["classes"] - (self.form == "ordered")}

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        wanted = batch["label"]
        found = costs_of(model, self.given(batch), lambda logits: self._losses(logits.float(), wanted, model.training))
        logits = found.logits.float()
        right = (self._decided(logits) == wanted).float()
        right = right.mean(1) if self.form == "several" else right
        plain = self._losses(logits, wanted, training=False) + found.penalty
        parts = {"accuracy": right.sum(), "loss": plain.detach().sum()}
        parts |= {name: figure.sum() for name, figure in found.figures.items()}
        return Loss(found.total.sum(), torch.tensor(len(logits), device=logits.device), parts)

    def _losses(self, logits: Tensor, wanted: Tensor, training: bool) -> Tensor:
        """The loss of each example; smoothing and weights are for training alone."""
        if self.form != "one":
            targets = wanted if self.form == "several" else above(wanted, logits.shape[1])
            return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(1)
        smoothing = self.label_smoothing if training else 0.0
        losses = F.cross_entropy(logits, wanted, reduction="none", label_smoothing=smoothing)
        weights = self._weights(logits.device) if training else None
        return losses if weights is None else losses * weights[wanted]

    def logits(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """What the model makes of the inputs of a batch: (batch, classes)."""
        found: Tensor = model(*self.given(batch))
        return found

    def _decided(self, logits: Tensor) -> Tensor:
        if self.form == "one":
            return logits.argmax(1)
        above_half = logits > 0
        return above_half.float() if self.form == "several" else above_half.sum(1)

    def _weights(self, device: torch.device) -> Tensor | None:
        if self.class_weights == "none" or self.form != "one":
            return None
        counts = torch.tensor([max(1, self.label.counts[name]) for name in self.label.names], device=device)
        return counts.sum() / (len(counts) * counts)

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
            details: dict[str, Any] = {"probabilities": dict(zip(self.label.names, several, strict=True))}
            if self.form == "several":
                chosen = [self.label.names[n] for n in range(len(several)) if several[n] >= options.threshold]
                value: Any = chosen
                score = min(max(p, 1.0 - p) for p in several)
            else:
                value, score = self.label.names[ranked[0]], several[ranked[0]]
            others = [Answer(self.label.names[n], several[n]) for n in ranked[: options.top]] if options.top > 1 else []
            attention = looked.of(row, self.label.show(value) or "(none)")
            details |= rationale_of(self, attention, examples[row])
            answers.append(Answer(value, score, attention, others, details))
        return answers

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        wanted = [example["label"] for example in examples]
        probabilities = [list(answer.details["probabilities"].values()) for answer in answers]
        values = [answer.value for answer in answers]
        figures = score_labels(values, wanted, probabilities, self.label.names, list(self.metrics), form=self.form)
        return figures | score_rationales(self, answers, examples)

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


def above(grades: Tensor, count: int) -> Tensor:
    """(batch, count): 1.0 for each of the `count` boundaries that a grade is above."""
    return (grades.unsqueeze(1) > torch.arange(count, device=grades.device)).float()
