"""What a task is: an objective over fields."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.configuration.blueprints import known
from saccade.evaluation import Figure, Table
from saccade.evaluation.bootstrap import bootstrap
from saccade.fields.looking import Looking
from saccade.interpretation.explorer import Item
from saccade.interpretation.recording import Trace
from saccade.registry import Registry
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import chosen_metrics
from saccade.tasks.data import Example, Row, TaskData
from saccade.tasks.options import Options

__all__ = ["Example", "Loss", "Ranking", "Row", "Task", "rounded", "tasks"]


class Loss(NamedTuple):
    """A loss summed over the items of a batch, so that batches of any size, on any process, add up exactly."""

    total: Tensor
    """The sum over all items. Training minimises the sum over a global batch divided by its count."""

    count: Tensor  # type: ignore[assignment] # tuples have a method of that name
    """The number of items: target tokens, documents, frames."""

    parts: dict[str, Tensor] = {}  # noqa: RUF012 (never written to)
    """Other sums over the same items, for the log. `loss` is the total without smoothing and penalties, comparable
    with validation."""

    carried: dict[str, Tensor] = {}  # noqa: RUF012 (never written to)
    """What a model carries to the next piece of the same texts, without a graph; the first dimension is the batch."""


class Ranking(Protocol):
    """Ranks answers with the help of another model."""

    def asked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a prediction that keeps all answers to choose from."""
        ...

    def ranked(self, answers: Sequence[Answer], options: Mapping[str, Any]) -> list[Answer]:
        """These answers with their alternatives reordered, best first, as many as the options ask for."""
        ...


class Task(TaskData):
    """What is learned from the data: a loss, answers, figures and explanations. Its fields do the rest.

    The constructor is the configuration. A new task sets `inputs` and `targets` and implements `sizes`, `loss`,
    `answer` and `score`.
    """

    options: ClassVar[type[Options]] = Options
    """The options of a prediction."""

    explain_options: ClassVar[type[Options]] = Options
    """The options of an explanation."""

    named: ClassVar[tuple[str, ...]] = ()
    """Inputs for which the command line has an option: `--user U17`."""

    usual_classes: ClassVar[Mapping[str, str]] = {}
    """The classes meant by a mapping without `class`, for arguments whose default does not name one."""

    evaluate_options: ClassVar[Mapping[str, Any]] = {}
    """Options that an evaluation sets if it does not score the default prediction."""

    unit: str = "examples"
    """The unit in which the loss is counted: tokens, examples."""

    metrics: Mapping[str, bool] = {}
    """The figures of an evaluation, and whether higher is better."""

    known_metrics: ClassVar[Mapping[str, bool]] = {}
    """All figures that it can compute, in the same form."""

    contiguous: bool = False
    """Whether the examples are parts of one text, to be read and held out in order."""

    picture: str = ""
    """What `draw` shows of an evaluation; empty if nothing."""

    writes_texts: ClassVar[bool] = False
    """Whether answers are found by a search, so that a language model can rerank them and they can be streamed."""

    def choose_metrics(self, names: Sequence[str]) -> None:
        """Sets the figures of an evaluation; raises `ValueError` for those that it cannot compute."""
        self.metrics = chosen_metrics(names, self.known_metrics or self.metrics)

    def roles(self) -> list[str]:
        """Every role that a column may have, including those that only an unused figure needs."""
        every = copy.copy(self)
        every.metrics = self.known_metrics or self.metrics
        return list(dict.fromkeys([*every.fields, *every.scored, *every.extras]))

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        """The summed loss of a batch."""
        raise NotImplementedError

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: Any
    ) -> list[Answer]:
        """The answer to each example of a batch."""
        raise NotImplementedError

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of answers, each with a signature of how it was computed."""
        raise NotImplementedError

    def pooled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of answers from several models, each trained like this one on other examples."""
        return self.score(answers, examples)

    def intervals(
        self, answers: Sequence[Answer], examples: Sequence[Example], samples: int
    ) -> dict[str, tuple[float, float]]:
        """The range of each figure in 95 % of this many resamplings of the examples."""

        def figures(chosen: NDArray[np.int64]) -> dict[str, float]:
            numbers = chosen.tolist()
            found = self.score([answers[n] for n in numbers], [examples[n] for n in numbers])
            return {name: figure.value for name, figure in found.items()}

        return bootstrap(figures, len(examples), samples)

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        """Details of an evaluation beyond its figures, such as a confusion matrix."""
        return []

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        """Draws a picture of an evaluation."""
        raise ValueError(f"{type(self).__name__} has no picture of an evaluation.")

    def measure(self, model: nn.Module, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of a model's answers, including those that need the model itself."""
        return self.score(answers, examples)

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        """What the model attends to: an explorer item for each example, or one for each of its sides.

        Args:
            model: a model with attention.
            examples: inputs; with targets, to explain the model for these instead of for its own answers.
            answers: the model's answers, if they are known.
            options: those of `explain_options` and of `options`.
        """
        raise ValueError(f"{type(self).__name__} has no explanations.")

    def align(self, model: nn.Module, pairs: Sequence[tuple[Any, Any]], **options: Any) -> list[Any]:
        """Which parts of an input and of a given answer correspond."""
        raise ValueError(f"{type(self).__name__} has no alignments: they connect the words of two texts.")

    def looking(self, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
        """The recorded attention that the answers to a batch show; None if they show none."""
        return None

    def portable(self, model: nn.Module) -> dict[str, Any]:
        """What a program without Saccade needs in order to answer as this task does, in JSON's types.

        `kind` names the module of `saccade/export/runner` that answers. A task without one cannot be exported.
        """
        raise ValueError("its answers cannot be made outside Saccade")

    def stand_ins(self, count: int, length: int) -> dict[str, Tensor]:
        """Made-up inputs by name, to trace a model with: `count` examples, the longest of `length` positions.

        Later inputs are longer than the first, so that no two axes have the same size by chance.
        """
        found: dict[str, Tensor] = {}
        for number, (role, field) in enumerate(self.inputs.items()):
            padded = field.stand_ins(count, length + 2 * number)
            found |= {role if name == "values" else f"{role}_{name}": tensor for name, tensor in padded.items()}
        return found

    @torch.no_grad()
    def predict(self, model: nn.Module, inputs: Sequence[Any], *, batch_size: int = 64, **options: Any) -> list[Answer]:
        """The answer to each input, in order.

        Args:
            model: made by `build`.
            inputs: examples, or plain values if the task has one input.
            batch_size: how many are answered together; inputs of similar size share a batch.
            options: those of `options`.
        """
        asked = self.options.of(options)
        examples = [self.example(value) for value in inputs]
        rows = self.prepare_all(model, examples)
        device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        found: dict[int, Answer] = {}
        was_training = model.training
        model.eval()
        try:
            for number, (row, example) in enumerate(zip(rows, examples, strict=True)):
                empty = self.empty_answer() if self.is_empty(example, row) else None
                if empty is not None:
                    found[number] = empty
            for numbers in self._batches(rows, batch_size, without=found):
                chosen = [examples[number] for number in numbers]
                batch = {k: v.to(device) for k, v in self.collate([rows[number] for number in numbers]).items()}
                answers = self.answer(model, batch, chosen, asked.part(numbers, len(examples)))
                found |= zip(numbers, answers, strict=True)
        finally:
            model.train(was_training)
        return [found[number] for number in range(len(examples))]

    def ranked_by(self, language: Task, model: nn.Module, weight: float) -> Ranking:
        """A ranking that lets another task's model help to choose among the answers.

        Args:
            language, model: a task of language modelling, and its model.
            weight: how much it counts.
        """
        raise ValueError(f"A language model ranks texts that a search found, but this task is {known(type(self))}.")

    def empty_answer(self) -> Answer | None:
        """The answer to an empty input; None if the model has to answer such inputs too."""
        return None

    def batches(self, model: nn.Module, inputs: Sequence[Any], batch_size: int) -> list[list[int]]:
        """The numbers of the inputs that `predict` answers together."""
        return list(self._batches(self.prepare_all(model, [self.example(value) for value in inputs]), batch_size))

    def _batches(self, rows: Sequence[Row], batch_size: int, without: Collection[int] = ()) -> Iterator[list[int]]:
        """Batches of rows of similar size, the largest first, so that a lack of memory shows at once."""
        check_count("batch_size", batch_size)
        sizes = {number: sum(self.size(row)) for number, row in enumerate(rows) if number not in without}
        order = sorted(sizes, key=lambda number: -sizes[number])
        for start in range(0, len(order), batch_size):
            yield order[start : start + batch_size]

    @torch.no_grad()
    def stream(
        self, model: nn.Module, example: Example, options: Any, emit: Callable[[dict[str, Any]], None]
    ) -> Answer:
        """The answer to one example; parts of it are passed to `emit` as soon as they are known.

        Args:
            model: in evaluation mode.
            example: an input.
            options: those of a prediction.
            emit: receives what a live page shows next: `{"token": ..., "text": ..., "weights": [...]}`.
        """
        given = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)}
        return self.predict(model, [example], **given)[0]

    def evaluate(self, model: nn.Module, examples: Sequence[Example], **options: Any) -> dict[str, float]:
        """The values of the figures named in `metrics`."""
        asked = {**options, **self.evaluate_options}
        figures = self.measure(model, self.predict(model, examples, **asked), examples)
        return {name: figure.value for name, figure in figures.items()}

    def remarks(self, answers: Sequence[Answer]) -> list[str]:
        """What a user should know about these answers as a whole."""
        return []

    def columns(self, options: Any) -> list[str]:
        """The names of the columns that `cells` fills; it may leave out the last ones."""
        return ["answer"]

    def cells(self, answer: Answer, options: Any) -> list[str]:
        """An answer as columns of text, the answer itself first."""
        return [answer.text]

    def as_json(self, example: Example, answer: Answer, *, attention: bool = True) -> dict[str, Any]:
        """An answer in JSON's types, with its input and, if wanted, the weights."""
        inputs = {role: field.show(example[role]) for role, field in self.inputs.items()}
        shown: dict[str, Any] = {"input": next(iter(inputs.values())) if len(inputs) == 1 else inputs}
        shown |= {"answer": answer.value, "score": answer.score, **answer.details}
        if answer.alternatives:
            shown["alternatives"] = [{"answer": a.value, "score": a.score, **a.details} for a in answer.alternatives]
        if attention and answer.attention is not None:
            looked = answer.attention
            shown |= {"queries": looked.queries, "keys": looked.keys, "weights": rounded(looked.weights)}
        return shown


def rounded(weights: Tensor) -> list[list[float]]:
    """Weights rounded for JSON: to four decimals, or more if a uniform weight would otherwise be 0."""
    places = max(4, 2 + len(str(weights.shape[-1])))
    return [[round(weight, places) for weight in row] for row in weights.tolist()]


tasks: Registry[Task] = Registry("task", base=Task, home="saccade.tasks")
