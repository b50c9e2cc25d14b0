"""What a task is: an objective over fields."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.data.cell import Cell
from saccade.evaluation import Figure, Table
from saccade.fields import Field
from saccade.interpretation.explorer import Item
from saccade.models.bert import Bert
from saccade.registry import Registry
from saccade.tasks.answers import Answer
from saccade.tasks.limits import check_lengths, read_by, too_long
from saccade.tasks.options import Options
from saccade.tasks.several import tell_apart

Example = Mapping[str, Any]
"""One case: a value for each of the task's fields."""

Row = dict[str, Any]
"""An example as its fields encode it."""


class Loss(NamedTuple):
    """A loss summed over the items of a batch, so that batches of any size, on any process, add up exactly."""

    total: Tensor
    """The sum over all items; what is minimised is the sum over a global batch divided by its count."""

    count: Tensor  # type: ignore[assignment] # tuples have a method of that name
    """How many items there are: target tokens, documents, frames."""

    parts: dict[str, Tensor] = {}  # noqa: RUF012 (never written to)
    """Other sums over the same items, for the log: `loss` is the total without smoothing and penalties, which
    compares with validation."""


class Task:
    """What is learned from the data: a loss, answers, figures and explanations. Its fields know the rest.

    The constructor is the configuration. A new task sets `inputs` and `targets` and writes `sizes`, `loss`, `answer`
    and `score`.
    """

    inputs: Mapping[str, Field] = {}
    """The fields that a model reads, by the name of their role."""

    targets: Mapping[str, Field] = {}
    """The fields that it learns to predict."""

    extras: Mapping[str, Field] = {}
    """What an example may hold besides, for figures and explanations, never for the loss. It is read where the columns
    of the data name it."""

    options: ClassVar[type[Options]] = Options
    """What may be asked of a prediction."""

    explain_options: ClassVar[type[Options]] = Options
    """What may be asked of an explanation."""

    evaluate_options: ClassVar[Mapping[str, Any]] = {}
    """Options that an evaluation sets, where it scores something else than what is predicted by default."""

    unit: str = "examples"
    """What the loss counts: tokens, examples."""

    metrics: Mapping[str, bool] = {}
    """The figures of an evaluation, and whether higher is better."""

    shared: Mapping[str, str] = {}
    """Texts that use the vocabulary of another text, by their roles: `{"hypothesis": "premise"}`."""

    picture: str = ""
    """What `draw` draws of an evaluation; empty if nothing."""

    @property
    def fields(self) -> dict[str, Field]:
        """What a training example holds."""
        return {**self.inputs, **self.targets}

    @property
    def scored(self) -> dict[str, Field]:
        """What an example must hold to be evaluated, if less than for training."""
        return self.fields

    def fit(self, examples: Iterable[Example]) -> None:
        """Lets each field learn from the training examples; a shared vocabulary is learned from all its texts."""
        for role, field in self.fields.items():
            if role not in self.shared:
                users = [role, *(other for other, owner in self.shared.items() if owner == role)]
                field.fit(example[user] for example in examples for user in users)
        self._share()

    def _share(self) -> None:
        for role, owner in self.shared.items():
            self.fields[role].share(self.fields[owner])

    def check_example(self, example: Example, cell: Cell) -> None:
        """Raises `cell.bad(problem, fix)` if the values of an example do not belong together."""

    def strata(self, example: Example) -> list[str]:
        """What a split of the data keeps in proportion: by default what the targets say, such as labels."""
        return [f"{role} {name}" for role, field in self.targets.items() for name in field.strata(example[role])]

    def observe(self, sizes: Sequence[Sequence[int]]) -> None:
        """Sees the sizes of all training examples, once they are encoded."""

    def encode(self, example: Example) -> Row:
        """An example as its fields encode it; without targets if it has none."""
        return {role: field.encode(example[role]) for role, field in self.fields.items() if role in example}

    def rows(self, example: Example) -> list[Row]:
        """What training makes of an example: one row, unless the task cuts it up."""
        return [self.encode(example)]

    def joined(self, examples: Iterable[Example]) -> list[Example]:
        """The examples as an evaluation sees them: all of them, unless several are right answers to one input."""
        return list(examples)

    def size(self, row: Row) -> tuple[int, ...]:
        """What an example costs in the token budget of a batch: the sizes of parts that are padded separately."""
        return tuple(field.size(row[role]) for role, field in self.fields.items() if role in row)

    def left_out(self, row: Row) -> str | None:
        """Why training leaves an example out ("source longer than max_length=100 tokens"); None to keep it."""
        for role, field in self.fields.items():
            reason = field.left_out(row[role]) if role in row else None
            if reason is not None:
                return f"{role} {reason}"
        return None

    def cut(self, row: Row) -> str | None:
        """Why only a part of an example is read ("text with more than max_words=100 words"); None if all of it is."""
        reasons = ((role, field.truncated(row[role])) for role, field in self.fields.items() if role in row)
        return " and ".join(f"{role} with {reason}" for role, reason in reasons if reason is not None) or None

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """The padded tensors of several examples; with a generator, for training, fields may augment them.

        The values of a field get the name of its role, and its other tensors are called `role_mask` and so on.
        """
        batch: dict[str, Tensor] = {}
        for role, field in self.fields.items():
            if role in rows[0]:
                padded = field.pad([row[role] for row in rows], generator)
                batch |= {role if name == "values" else f"{role}_{name}": tensor for name, tensor in padded.items()}
        return batch if generator is not None or len(self.inputs) == 1 else tell_apart(batch, self.inputs)

    def sizes(self) -> dict[str, Any]:
        """The arguments of a model that follow from the data; stand-ins before `fit`."""
        return {}

    def input_sizes(self) -> dict[str, int | None]:
        """The sizes of all inputs: `vocab` is that of the first, `vocab_2` that of the second, and so on.

        The size of a shared vocabulary is given once: it is None for the texts that use that of an earlier one.
        """
        found: dict[str, int | None] = {}
        for number, (role, field) in enumerate(self.inputs.items(), start=1):
            for name, size in field.sizes().items():
                found[name if number == 1 else f"{name}_{number}"] = None if role in self.shared else size
        return found

    def given(self, batch: dict[str, Tensor]) -> list[Tensor]:
        """The tensors of a batch that a model reads."""
        return [tensor for name, tensor in batch.items() if self._role(name) in self.inputs]

    def _role(self, name: str) -> str:
        """The role of the field that a tensor of a batch belongs to."""
        fit = [role for role in self.fields if name == role or name.startswith(f"{role}_")]
        return max(fit, key=len, default=name)

    def check(self, model: nn.Module) -> None:
        """Raises `ValueError` if the model, which may be on the meta device, cannot take what training keeps."""
        check_lengths(model, self.inputs)

    def build(self, model_class: type[nn.Module], **arguments: Any) -> nn.Module:
        """A model with the sizes that follow from the data."""
        return model_class(**self.sizes(), **arguments)

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        """The summed loss of a batch."""
        raise NotImplementedError

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: Any
    ) -> list[Answer]:
        """The answer to each example of a batch."""
        raise NotImplementedError

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of answers, each with how exactly it was computed."""
        raise NotImplementedError

    def pooled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of answers that several models gave, each trained like this one on other examples."""
        return self.score(answers, examples)

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        """Details of an evaluation beside the figures, such as a confusion matrix."""
        return []

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        """Writes a picture of an evaluation."""
        raise ValueError(f"{type(self).__name__} has no picture of an evaluation.")

    def measure(self, model: nn.Module, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of a model's answers, and those that need the model itself."""
        return self.score(answers, examples)

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        """What the model looks at, for the explorer: an item for each example.

        Args:
            model: with attention.
            examples: inputs, with targets if the model is to be explained for these instead of its own answers.
            answers: what the model answered, if that is known.
            options: those of `explain_options` and of `options`.
        """
        raise ValueError(f"{type(self).__name__} has no explanations.")

    def align(self, model: nn.Module, pairs: Sequence[tuple[Any, Any]], **options: Any) -> list[Any]:
        """Which parts of an input and of a given answer belong together."""
        raise ValueError(f"{type(self).__name__} has no alignments: they connect the words of two texts.")

    @torch.no_grad()
    def predict(self, model: nn.Module, inputs: Sequence[Any], *, batch_size: int = 64, **options: Any) -> list[Answer]:
        """The answer to each input, in their order.

        Args:
            model: made by `build`.
            inputs: examples, or plain values if the task has one input.
            batch_size: how many are answered together; inputs of similar size share a batch.
            options: those of `options`.
        """
        asked = self.options.of(options)
        examples = [self.example(value) for value in inputs]
        rows = [self.prepare(model, example) for example in examples]
        device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        found: dict[int, Answer] = {}
        was_training = model.training
        model.eval()
        try:
            for numbers in self._batches(rows, batch_size):
                chosen = [examples[number] for number in numbers]
                blank = self.blank(rows[numbers[0]])
                if blank is not None:
                    found |= dict.fromkeys(numbers, blank)
                    continue
                batch = {k: v.to(device) for k, v in self.collate([rows[number] for number in numbers]).items()}
                answers = self.answer(model, batch, chosen, asked.part(numbers, len(examples)))
                found |= zip(numbers, answers, strict=True)
        finally:
            model.train(was_training)
        return [found[number] for number in range(len(examples))]

    def example(self, value: Any) -> Example:
        """An input as an example: a plain value, which may itself be a dictionary, is the value of the only input."""
        if isinstance(value, Mapping) and not self.inputs.keys().isdisjoint(value):
            return value
        if len(self.inputs) != 1:
            raise TypeError(f"An input is a dictionary with {' and '.join(self.inputs)}, got {value!r:.60}.")
        return {next(iter(self.inputs)): value}

    def prepare(self, model: nn.Module, example: Example) -> Row:
        """The inputs of an example as `answer` gets them, texts cut to what the model can read."""
        return read_by(model, self.inputs, {role: field.encode(example[role]) for role, field in self.inputs.items()})

    def blank(self, row: Row) -> Answer | None:
        """The answer to an empty input; None if the model has to answer it."""
        return None

    def batches(self, model: nn.Module, inputs: Sequence[Any], batch_size: int) -> list[list[int]]:
        """The numbers of the inputs that `predict` answers together."""
        return list(self._batches([self.prepare(model, self.example(value)) for value in inputs], batch_size))

    def _batches(self, rows: Sequence[Row], batch_size: int) -> Iterator[list[int]]:
        """Numbers of rows of similar size, the largest first: a lack of memory then shows at once."""
        check_count("batch_size", batch_size)
        blank = [number for number, row in enumerate(rows) if self.blank(row) is not None]
        if blank:
            yield blank
        out = set(blank)
        sizes = {number: sum(self.size(row)) for number, row in enumerate(rows) if number not in out}
        order = sorted(sizes, key=lambda number: -sizes[number])
        for start in range(0, len(order), batch_size):
            yield order[start : start + batch_size]

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        """What `predict` does not read of long inputs, by the number of the input, counted from 0."""
        found = too_long(model, self.inputs, [self.example(value) for value in inputs])
        if any(type(field).truncated is not Field.truncated for field in self.inputs.values()):
            cuts = (self.cut(self.prepare(model, self.example(value))) for value in inputs)
            found |= {number: f"a {cut}: the rest is not read" for number, cut in enumerate(cuts) if cut is not None}
        return found

    def unknown(self, inputs: Sequence[Any]) -> dict[int, list[str]]:
        """The parts of each input that the training data did not have, by the number of the input."""
        found: dict[int, list[str]] = {}
        for number, value in enumerate(inputs):
            example = self.example(value)
            strange = [part for role, field in self.inputs.items() for part in field.unknown(example[role])]
            if strange:
                found[number] = strange
        return found

    def length(self, example: Example) -> int:
        """How long an input is, for figures by length: tokens, frames."""
        return sum(field.size(field.encode(example[role])) for role, field in self.inputs.items())

    def vectors(self, model: nn.Module, inputs: Sequence[Any]) -> Tensor:
        """(inputs, dim): each input as the vector that a model makes of it before it answers."""
        if not isinstance(model, Bert):
            raise ValueError(f"{type(model).__name__} gives no vectors of its inputs: bert does.")
        role = next(iter(self.inputs))
        rows = [self.prepare(model, self.example(value))[role] for value in inputs]
        return model.encode([row["ids"] for row in rows], [row["first"] for row in rows])

    def evaluate(self, model: nn.Module, examples: Sequence[Example], **options: Any) -> dict[str, float]:
        """The values of the figures named in `metrics`."""
        asked = {**options, **self.evaluate_options}
        figures = self.measure(model, self.predict(model, examples, **asked), examples)
        return {name: figure.value for name, figure in figures.items()}

    def remarks(self, answers: Sequence[Answer]) -> list[str]:
        """What a user should know about these answers as a whole."""
        return []

    def cells(self, answer: Answer, options: Any) -> list[str]:
        """An answer as columns of text, the answer itself first."""
        return [answer.text]

    @torch.no_grad()
    def stream(
        self, model: nn.Module, example: Example, options: Any, emit: Callable[[dict[str, Any]], None]
    ) -> Answer:
        """The answer to one example; what can be said of it before it is complete goes to `emit`.

        Args:
            model: in evaluation mode.
            example: an input.
            options: those of a prediction.
            emit: takes what the explorer of a live page shows next: `{"token": ..., "weights": [...]}`.
        """
        given = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)}
        return self.predict(model, [example], **given)[0]

    def as_json(self, example: Example, answer: Answer, *, attention: bool = True) -> dict[str, Any]:
        """An answer as JSON can hold it, with its input and, if asked for, the weights."""
        inputs = {role: field.show(example[role]) for role, field in self.inputs.items()}
        shown: dict[str, Any] = {"input": next(iter(inputs.values())) if len(inputs) == 1 else inputs}
        shown |= {"answer": answer.value, "score": answer.score, **answer.details}
        if answer.alternatives:
            shown["alternatives"] = [{"answer": a.value, "score": a.score, **a.details} for a in answer.alternatives]
        if attention and answer.attention is not None:
            looked = answer.attention
            shown |= {"queries": looked.queries, "keys": looked.keys, "weights": rounded(looked.weights)}
        return shown

    def save(self, folder: Path) -> None:
        """Writes what the fields learned, each into a folder of its own."""
        for role, field in self.fields.items():
            (folder / role).mkdir(exist_ok=True)
            field.save(folder / role)

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote into a task constructed with the same arguments."""
        for role, field in self.fields.items():
            field.load(folder / role)
        self._share()


def rounded(weights: Tensor) -> list[list[float]]:
    """Weights as JSON shows them."""
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]


tasks: Registry[Task] = Registry("task", base=Task, home="saccade.tasks")
