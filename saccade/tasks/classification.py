"""Classification: an input gets a label, several labels, a grade, or a label for each of its words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.evaluation import labels, tags
from saccade.evaluation.figures import Figure
from saccade.evaluation.tables import Table
from saccade.fields import Field, Label, Labels, Tags, Text, fields
from saccade.interpretation.explorer import Item, Measure, Outcome
from saccade.interpretation.plots import plot_reliability
from saccade.interpretation.recording import record
from saccade.models import costs_of
from saccade.registry import nearest
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Loss, Row, Task, tasks
from saccade.tasks.explaining import RecordOptions, attended, explain_inputs
from saccade.tasks.forms import Form, losses_of, probabilities_of, right_share
from saccade.tasks.options import Options
from saccade.tasks.rationales import check_evidence, extras, rationale_of, score_rationales
from saccade.tasks.several import shared_vocabularies
from saccade.tasks.tagging import at_words, describe_tags, pad_places, tag_answers, text_to_tag, word_places

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
        top: how many labels to list for each input, the most probable first; not for tags.
        threshold: if an input can have several labels, the probability from which a label is given.
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
    r"""Chooses a label for each input, or for each word of a text: a topic, the kind of a node, a part of speech.

    A single label and the tags of words are learned with cross-entropy, several labels with a binary cross-entropy for
    each, and ordered labels through the probability of exceeding each grade:

    .. math:: p(y > k) = \sigma(z_k), \quad k = 1, ..., K - 1

    Args:
        inputs: what is read, by the names of the columns: `{text: {class: text, tokeniser: word}}`. A text by default.
        label: `label` for one of several classes (`{class: label, ordered: true}` for grades such as stars), `labels`
            for any number of them, `tags` for one class per word of the first input. A model for tags gives logits
            (batch, positions, classes), read at the first piece of each word.
        joint: whether texts with equal tokenisers share one vocabulary, learned from all of them.
        label_smoothing: how much probability training spreads evenly over all classes, for a single unordered label or
            for tags.
        class_weights: how much the examples of each class count in training. "balanced" gives each class the same total
            weight; `{spam: 3, ham: 0.5}` sets weights by name, 1 for all others. If an example can have several labels,
            "balanced" gives the examples with and without each label the same total weight, and a named weight
            applies to the examples that have the label.
        evidence: what people marked in an input, if `columns` names a column of that role. Evaluations compare it with
            what the model picked or attended to.
        metrics: the figures of an evaluation: accuracy, macro_f1, micro_f1, auroc, ece; for ordered labels also
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
        metrics: Sequence[str] = ("accuracy", "macro_f1"),
    ) -> None:
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be from 0 to less than 1, got {label_smoothing}.")
        _check_weights(class_weights)
        made = fields.create(label) if isinstance(label, str) else label
        if not isinstance(made, Label):
            raise ValueError(f"label must be the field label, labels or tags, got {type(made).__name__}.")
        self.label = made
        known = (tags if self.form == "tags" else labels).HIGHER_IS_BETTER
        for metric in metrics:
            if metric not in known:
                raise ValueError(f"Unknown metric {metric!r}.{nearest(metric, known)}")
            if self.form not in ("tags", "ordered") and labels.METRICS[metric].of_grades:
                raise ValueError(
                    f"{metric} is a figure of ordered labels: set label to {{class: label, ordered: true}}."
                )
        self.inputs = dict(inputs) if inputs is not None else {"text": Text(tokeniser="word")}
        if not self.inputs or "label" in self.inputs:
            raise ValueError("inputs must name at least one input, and none may be called label.")
        if self.form == "tags":
            text_to_tag(self.inputs)
            self.unit = "words"
        else:
            self.picture = "the reliability of the probabilities"
        self.shared = shared_vocabularies(self.inputs) if joint else {}
        self.targets = {"label": self.label}
        self.extras = extras(self.inputs, evidence)
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights
        self.metrics = {name: known[name] for name in metrics}

    @property
    def form(self) -> Form:
        """What is chosen: one label, several, a grade, or one for each word."""
        if isinstance(self.label, Tags):
            return "tags"
        return "several" if isinstance(self.label, Labels) else "ordered" if self.label.ordered else "one"

    def sizes(self) -> dict[str, int | None]:
        return {**self.input_sizes(), "classes": self.label.sizes()["classes"] - (self.form == "ordered")}

    def fit(self, examples: Iterable[Example]) -> None:
        super().fit(examples)
        self.weights()  # which may name a label that there is not

    def check_example(self, example: Example, cell: Cell) -> None:
        check_evidence(self, example, cell)
        if self.form == "tags" and "label" in example:
            role, text = next(iter(self.inputs.items()))
            words, given = len(text.show(example[role]).split()), len(example["label"])
            if words != given:
                fix = "Give one tag per word; words are separated by spaces."
                counted = f"{words} word{'s' * (words != 1)} but {given} tag{'s' * (given != 1)}"
                raise cell.bad(f"the {role} has {counted}", fix)

    def encode(self, example: Example) -> Row:
        return self._with_places(example, super().encode(example))

    def prepare(self, model: nn.Module, example: Example) -> Row:
        return self._with_places(example, super().prepare(model, example))

    def _with_places(self, example: Example, row: Row) -> Row:
        if self.form != "tags":
            return row
        role, text = next(iter(self.inputs)), text_to_tag(self.inputs)
        return {**row, "places": word_places(text, example[role], text.size(row[role]))}

    def left_out(self, row: Row) -> str | None:
        if self.form == "tags" and "label" in row and len(row["places"]) != len(row["label"]):
            return "text longer than its max_length"
        return super().left_out(row)

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        batch = super().collate(rows, generator=generator)
        return batch | pad_places([row["places"] for row in rows]) if self.form == "tags" else batch

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        wanted = batch["label"][batch["label_mask"]] if self.form == "tags" else batch["label"]

        def losses(given: Tensor) -> Tensor:
            return self._losses(self._shaped(given, batch), wanted, model.training)

        found = costs_of(model, self.given(batch), losses)
        logits = self._shaped(found.logits, batch)
        plain = losses_of(self.form, logits, wanted) + found.penalty
        parts = {"accuracy": right_share(self.form, logits, wanted).sum(), "loss": plain.detach().sum()}
        parts |= {name: figure.sum() for name, figure in found.figures.items()}
        return Loss(found.total.sum(), torch.tensor(len(logits), device=logits.device), parts)

    def _losses(self, logits: Tensor, wanted: Tensor, training: bool) -> Tensor:
        """The loss of each example or word; smoothing and weights are for training alone."""
        if not training:
            return losses_of(self.form, logits, wanted)
        weights = None if self.class_weights == "none" else self.weights().to(logits)
        return losses_of(self.form, logits, wanted, smoothing=self.label_smoothing, weights=weights)

    def logits(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """What the model makes of a batch: (batch, classes), or (words, classes) of all words one after another."""
        return self._shaped(model(*self.given(batch)), batch)

    def _shaped(self, found: Tensor, batch: dict[str, Tensor]) -> Tensor:
        if self.form == "tags":
            return at_words(found, batch).float()
        if found.dim() != 2:
            raise ValueError(f"a label needs a model that returns (batch, classes), not {tuple(found.shape)}.")
        return found.float()

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

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: ClassificationOptions
    ) -> list[Answer]:
        if self.form == "tags":
            return self._tags(model, batch, examples, options)
        with attended(self, model, batch, examples) as looked:
            probabilities = probabilities_of(self.form, self.logits(model, batch)).cpu()
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

    def _tags(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: ClassificationOptions
    ) -> list[Answer]:
        if options.top > 1:
            raise ValueError("top lists several labels of one input, but every word has one tag: leave it out.")
        role = next(iter(self.inputs))
        with record(model) as trace:
            found = probabilities_of(self.form, self.logits(model, batch)).cpu()
        values, lengths = [example[role] for example in examples], batch[f"{role}_mask"].sum(1).tolist()
        return tag_answers(text_to_tag(self.inputs), values, lengths, self.label.names, found, batch, trace)

    def cells(self, answer: Answer, options: ClassificationOptions) -> list[str]:
        return [self.label.show(answer.value) if isinstance(answer.value, list) else answer.value]

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        if self.form == "tags":
            wanted = [example["label"] for example in examples]
            return tags.score_tags([answer.value for answer in answers], wanted, list(self.metrics))
        return self._labelled(answers, examples).figures(list(self.metrics)) | score_rationales(self, answers, examples)

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        if self.form == "tags":
            return tags.tables_of_tags([answer.value for answer in answers], [example["label"] for example in examples])
        return self._labelled(answers, examples).tables()

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        plot_reliability(self._labelled(answers, examples).reliability(), path)

    def _labelled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> labels.Labelled:
        """Answers beside the truth; both may name labels that this training did not see, in cross-validation."""
        if self.form == "tags":
            raise ValueError("tags have no probabilities to draw.")
        wanted = [example["label"] for example in examples]
        given = [answer.details["probabilities"] for answer in answers]
        strange = (name for label in wanted for name in self.label.strata(label))
        names = self.label.known_with({*strange, *(name for each in given for name in each)})
        probabilities = [[each.get(name, 0.0) for name in names] for each in given]
        return labels.Labelled.of([answer.value for answer in answers], wanted, probabilities, names, self.form)

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        return explain_inputs(self, model, examples, answers, describe=self._describe, **options)

    def _describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        if self.form == "tags":
            return describe_tags(answer, example.get("label")), []
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
