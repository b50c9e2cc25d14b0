"""Classification: each input gets a label, several labels, a grade, or a label for each of its words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.evaluation.figures import Figure
from saccade.evaluation.tables import Table
from saccade.fields import Field, Label, Labels, Tags, Text, VisitLabel, VisitLabels
from saccade.fields.looking import Looking
from saccade.interpretation.explorer import Item
from saccade.interpretation.recording import Trace
from saccade.models import costs_of
from saccade.registry import nearest
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Loss, Row, Task, tasks
from saccade.tasks.explaining import RecordOptions, explain_inputs
from saccade.tasks.forms import ClassificationOptions, Form
from saccade.tasks.labelling import OneLabel, OrderedLabels, SeveralLabels
from saccade.tasks.leakage import leaks_by_name, leaks_in_visits
from saccade.tasks.limits import most_tokens
from saccade.tasks.metric_names import ClassificationMetric
from saccade.tasks.rationales import check_evidence, extras
from saccade.tasks.several import shared_vocabularies
from saccade.tasks.tagging import TagPerWord
from saccade.tasks.visiting import EachVisit


@tasks.register("classification")
class Classification(Task):
    r"""Chooses a label for each input, or for each word of a text: a topic, the kind of a node, a part of speech.

    A single label and the tags of words are learned with cross-entropy, several labels with a binary cross-entropy for
    each, and ordered labels through the probability of exceeding each grade:

    .. math:: p(y > k) = \sigma(z_k), \quad k = 1, ..., K - 1

    Args:
        inputs: what is read, by the names of the columns: `{text: {class: text, tokeniser: word}}`. A text by default.
        label: `label` for one of several classes (`{class: label, ordered: true}` for grades such as stars, `{class:
            label, positive: sick}` for two classes of which one is to be detected), `labels` for any number of them,
            `tags` for one class per word of the first input, `visit_label` and `visit_labels` for outcomes at each
            visit. A model for tags gives logits (batch, positions, classes), read at the first piece of each word.
        joint: whether texts with equal tokenisers share one vocabulary, learned from all of them.
        label_smoothing: how much probability training spreads evenly over all classes, for a single unordered label or
            for tags.
        class_weights: how much the examples of each class count in training. "balanced" gives each class the same total
            weight; `{spam: 3, ham: 0.5}` sets weights by name, 1 for all others. If an example can have several labels,
            "balanced" gives the examples with and without each label the same total weight, and a named weight
            applies to the examples that have the label.
        evidence: what people marked in an input, if `data.columns` names such a column. Evaluations compare it with
            what the model picked or attended to.
        metrics: the figures of an evaluation: accuracy, macro_f1, micro_f1, auroc, auprc, ece; with a positive class or
            several labels also sensitivity and specificity, which depend on the option `threshold`; for ordered labels
            mean_absolute_error and quadratic_weighted_kappa; for tags accuracy, macro_f1 and, if they look like
            B-place, I-place and O, entity_f1.

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
        joint: bool = True,
        label_smoothing: float = 0.0,
        class_weights: Literal["none", "balanced"] | dict[str, float] = "none",
        evidence: Field | str = "evidence",
        metrics: Sequence[ClassificationMetric] = ("accuracy", "macro_f1"),
    ) -> None:
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be from 0 to less than 1, got {label_smoothing}.")
        _check_weights(class_weights)
        self.label = field_of("label", label, Label)
        self.inputs = dict(inputs) if inputs is not None else {"text": Text(tokeniser="word")}
        if not self.inputs or "label" in self.inputs:
            raise ValueError("inputs must name at least one input, and none may be called label.")
        self.form = _form_of(self.label, self.inputs)
        self.unit, self.picture = self.form.unit, self.form.picture
        self.shared = shared_vocabularies(self.inputs) if joint else {}
        self.targets = {"label": self.label}
        self.extras = extras(self.inputs, evidence)
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights
        self.leaks: list[str] = []
        """Warnings about the training data."""
        self.choose_metrics(metrics)

    def choose_metrics(self, names: Sequence[str]) -> None:
        self.metrics = self.form.metrics(names)

    def sizes(self) -> dict[str, int | None]:
        return {**self.input_sizes(), "classes": self.form.outputs(), **self.form.sizes()}

    def fit(self, examples: Iterable[Example]) -> None:
        super().fit(examples)
        self.weights()  # refuses names that are not labels
        self.leaks = leaks_in_visits(self.label, self.inputs, examples)

    def warnings(self, columns: Mapping[str, Any]) -> list[str]:
        return [*self.leaks, *leaks_by_name(self.label, self.inputs, columns)]

    def check_example(self, example: Example, cell: Cell) -> None:
        check_evidence(self, example, cell)
        self.form.check_example(example, cell)

    def encode(self, example: Example) -> Row:
        return self.form.complete(super().encode(example), example)

    def prepare(self, model: nn.Module, example: Example) -> Row:
        return self.form.complete(super().prepare(model, example), example)

    def left_out(self, row: Row) -> str | None:
        return self.form.left_out(row) or super().left_out(row)

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        return super().collate(rows, generator=generator) | self.form.collate(rows)

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        wanted = self.form.wanted(batch)

        def losses(given: Tensor) -> Tensor:
            return self._losses(self.form.logits(given, batch), wanted, model.training)

        found = costs_of(model, self.given(batch), losses)
        logits = self.form.logits(found.logits, batch)
        plain = self.form.losses(logits, wanted) + found.penalty
        parts = {"accuracy": self.form.right(logits, wanted).sum(), "loss": plain.detach().sum()}
        parts |= {name: figure.sum() for name, figure in found.figures.items()}
        return Loss(found.total.sum(), torch.tensor(len(logits), device=logits.device), parts)

    def _losses(self, logits: Tensor, wanted: Tensor, training: bool) -> Tensor:
        """The loss of each example or word; smoothing and weights apply only in training."""
        if not training:
            return self.form.losses(logits, wanted)
        weights = None if self.class_weights == "none" else self.weights().to(logits)
        return self.form.losses(logits, wanted, smoothing=self.label_smoothing, weights=weights)

    def logits(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """The logits of a batch: (batch, classes), or (words, classes) with all words one after another."""
        return self.form.logits(model(*self.given(batch)), batch)

    def weights(self) -> Tensor:
        """(2, classes): the weights of training examples with and without each label."""
        if not isinstance(self.class_weights, dict):
            return self.form.balanced()
        names = self.label.names
        unknown = next((name for name in self.class_weights if name not in names), None)
        if unknown is not None:
            raise ValueError(f"class_weights names {unknown!r}, which is not a label.{nearest(unknown, names)}")
        own = torch.tensor([float(self.class_weights.get(name, 1.0)) for name in names])
        return torch.stack([own, torch.ones_like(own)])

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: ClassificationOptions
    ) -> list[Answer]:
        return self.form.answers(self, model, batch, examples, options)

    def empty_answer(self) -> Answer:
        return self.form.empty_answer()

    def remarks(self, answers: Sequence[Answer]) -> list[str]:
        if not self.form.several:
            return []
        none = sum(answer.value == [] and answer.score > 0.0 for answer in answers)  # answers to empty inputs have 0
        said = f"{none:,} of {len(answers):,} answers have no label, since none is likely enough: see threshold."
        return [said] if none else []

    def cells(self, answer: Answer, options: ClassificationOptions) -> list[str]:
        several = isinstance(answer.value, list)  # and not one of them
        return [self.label.show(answer.value) if several else answer.text]

    def looking(self, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
        return self.form.looking(self, trace, batch)

    def portable(self, model: nn.Module) -> dict[str, Any]:
        about = {"form": self.form.name, "labels": self.label.names, "most": most_tokens(model)}
        if self.label.positive_class is not None:
            about["positive"] = self.label.positive_class
        several = isinstance(self.label, Labels | Tags | VisitLabel)
        between = {"between": self.label.show(["", ""])} if several else {}  # of the labels of an answer
        return {"kind": "classification", **about, **between}

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        return self.form.score(self, answers, examples)

    def intervals(
        self, answers: Sequence[Answer], examples: Sequence[Example], samples: int
    ) -> dict[str, tuple[float, float]]:
        return self.form.intervals(self, answers, examples, samples)

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        return self.form.tables(answers, examples)

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        self.form.draw(answers, examples, path)

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        look = partial(self.form.look, self)
        return explain_inputs(self, model, examples, answers, describe=self.form.describe, look=look, **options)


def _form_of(label: Label, inputs: Mapping[str, Field]) -> Form:
    if isinstance(label, VisitLabel):
        return EachVisit(label, inputs, OneLabel(label))
    if isinstance(label, VisitLabels):
        return EachVisit(label, inputs, SeveralLabels(label))
    if isinstance(label, Tags):
        return TagPerWord(label, inputs)
    if isinstance(label, Labels):
        return SeveralLabels(label)
    return OrderedLabels(label) if label.ordered else OneLabel(label)


def _check_weights(weights: Any) -> None:
    if isinstance(weights, dict):
        for name, weight in weights.items():
            if not 0.0 <= weight < math.inf:
                raise ValueError(f"class_weights must be 0 or more, got {weight} for {name!r}.")
    elif weights not in ("none", "balanced"):
        raise ValueError(f"class_weights must be 'none', 'balanced' or weights by name, got {weights!r:.60}.")
