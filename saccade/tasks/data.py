"""How a task reads, encodes and batches its data, regardless of its objective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.data.errors import DataError
from saccade.data.marks import mark
from saccade.fields import Field, plain
from saccade.tasks.answers import Answer
from saccade.tasks.limits import check_lengths, read_by, too_long
from saccade.tasks.several import tell_apart

Example = Mapping[str, Any]
"""One example: a value for each of the task's fields."""

Row = dict[str, Any]
"""An example as its fields encode it."""


class FitError(ValueError):
    """A field cannot learn from the training data.

    Args:
        role: that of the field.
        problem: what is wrong with its values.
    """

    def __init__(self, role: str, problem: str) -> None:
        super().__init__(f"{role}: {problem}")
        self.role, self.problem = role, problem


class TaskData:
    """The data half of a task. Its fields do most of the work."""

    inputs: Mapping[str, Field] = {}
    """The fields that a model reads, by role."""

    targets: Mapping[str, Field] = {}
    """The fields that it learns to predict, by role."""

    extras: Mapping[str, Field] = {}
    """Optional fields for figures and explanations, never for the loss. They are read if the data has columns for
    them."""

    compared: bool = False
    """Whether explanations show the targets of a table beside the answers."""

    shared: Mapping[str, str] = {}
    """Texts that use the vocabulary of another text, by role: `{"hypothesis": "premise"}`."""

    @property
    def fields(self) -> dict[str, Field]:
        """The fields of a training example."""
        return {**self.inputs, **self.targets}

    @property
    def scored(self) -> dict[str, Field]:
        """The fields that an evaluation needs, if they differ from those of training."""
        return self.fields

    @property
    def figure_columns(self) -> dict[str, str]:
        """The roles among `scored` that only a figure needs, and that figure: `{"alignment": "aer"}`."""
        return {}

    about_unread: str = ""
    """What to tell users about columns that are not read; empty if that is nothing to worry about."""

    def check_files(self) -> None:
        """Raises before any work if a file that a new training needs, besides its data, cannot be used."""
        for field in self.fields.values():
            if field.vectors is not None:
                field.vectors.check()

    def fit(self, examples: Iterable[Example]) -> None:
        """Fits each field to the training examples; a shared vocabulary is fitted to all its texts."""
        for role, field in self.fields.items():
            if role not in self.shared:
                users = [role, *(other for other, owner in self.shared.items() if owner == role)]
                try:
                    field.fit(example[user] for example in examples for user in users)
                except DataError:
                    raise
                except ValueError as error:
                    raise FitError(role, str(error)) from error
        self._share()

    def _share(self) -> None:
        for role, owner in self.shared.items():
            self.fields[role].share(plain(self.fields[owner]))

    def check_example(self, example: Example, cell: Cell) -> None:
        """Raises `cell.bad(problem, fix)` if the values of an example contradict each other."""

    def warnings(self, columns: Mapping[str, Any]) -> list[str]:
        """Warnings about the training data as a whole, after fitting.

        Args:
            columns: the columns of roles, where the user named them.
        """
        return []

    def mark(self, example: Example) -> int:
        """Equal for examples with equal inputs."""
        present = {role: field for role, field in self.inputs.items() if role in example}
        return mark({role: field.identity(example[role]) for role, field in present.items()}, present)

    def strata(self, example: Example) -> list[str]:
        """The groups whose proportions a split preserves: by default those of the targets, such as labels."""
        return [f"{role} {name}" for role, field in self.targets.items() for name in field.strata(example[role])]

    def origin(self, example: Example) -> tuple[float | None, str]:
        """The time of an example, in seconds, and its user, for splits by time and leave-one-out."""
        raise DataError(f"The examples of {type(self).__name__} have no time and no user: leave out data.split.")

    def observe(self, sizes: Sequence[Sequence[int]]) -> None:
        """Receives the sizes of all training examples after encoding."""

    def encode(self, example: Example) -> Row:
        """Encodes an example, which may lack its targets."""
        return {role: field.encode(example[role]) for role, field in self.fields.items() if role in example}

    def rows(self, example: Example) -> list[Row]:
        """The training rows of an example: one, unless the task cuts examples into pieces."""
        return [self.encode(example)]

    def in_order(self, rows: Sequence[Row], budget: int) -> Sequence[Row]:
        """The training rows: as they are, unless the task reads them as one text, by pieces (`Pieces`).

        Args:
            rows: of all examples.
            budget: the most tokens of a batch.
        """
        return rows

    def joined(self, examples: Iterable[Example]) -> list[Example]:
        """The examples of an evaluation: all of them, unless several are right answers to one input."""
        return list(examples)

    def size(self, row: Row) -> tuple[int, ...]:
        """The cost of an example in a batch's token budget: the sizes of the parts that are padded separately."""
        return tuple(field.size(row[role]) for role, field in self.fields.items() if role in row)

    def left_out(self, row: Row) -> str | None:
        """Why training leaves an example out ("source longer than max_length=100 tokens"), or None to keep it."""
        for role, field in self.fields.items():
            reason = field.left_out(row[role]) if role in row else None
            if reason is not None:
                return f"{role} {reason}"
        return None

    def cut(self, row: Row) -> str | None:
        """Why an example is truncated ("text with more than max_words=100 words"), or None if it is read in full."""
        reasons = ((role, field.truncated(row[role])) for role, field in self.fields.items() if role in row)
        return " and ".join(f"{role} with {reason}" for role, reason in reasons if reason is not None) or None

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Pads several examples into tensors; with a generator, which only training passes, fields may augment them.

        The values of a field are named after its role, and its other tensors `role_mask` and so on.
        """
        batch = self.padded(rows, generator)
        return batch if generator is not None or len(self.inputs) == 1 else tell_apart(batch, self.inputs)

    def padded(self, rows: Sequence[Row], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """The tensors of several examples, as their fields pad them."""
        batch: dict[str, Tensor] = {}
        for role, field in self.fields.items():
            if role in rows[0]:
                padded = field.pad([row[role] for row in rows], generator)
                batch |= {role if name == "values" else f"{role}_{name}": tensor for name, tensor in padded.items()}
        return batch

    def sizes(self) -> dict[str, Any]:
        """The model arguments that follow from the data; placeholders before `fit`."""
        return {}

    def input_sizes(self) -> dict[str, int | None]:
        """The sizes of all inputs: `vocab` for the first, `vocab_2` for the second, and so on.

        The size of a shared vocabulary is given once: texts that use an earlier text's vocabulary have None.
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
        """Raises `ValueError` if the model, which may be on the meta device, cannot read what training keeps."""
        check_lengths(model, self.inputs)

    def start(self, model: nn.Module) -> list[str]:
        """Initialises a new model, for example with word vectors; returns lines that describe it."""
        return []

    def build(self, model_class: type[nn.Module], **arguments: Any) -> nn.Module:
        """Builds a model with the sizes that follow from the data, in place of arguments that are None."""
        sizes = self.sizes()
        wrong = next((name for name in sizes if arguments.get(name) is not None), None)
        if wrong is not None:
            raise ValueError(f"model.{wrong} follows from the task and the data, and cannot be set.")
        return model_class(**{**arguments, **sizes})

    def example(self, value: Any) -> Example:
        """An input as an example: a plain value, which may itself be a dictionary, is the value of the only input."""
        if isinstance(value, Mapping) and not self.inputs.keys().isdisjoint(value):
            return value
        if len(self.inputs) != 1:
            raise TypeError(f"An input is a dictionary with {' and '.join(self.inputs)}, got {value!r:.60}.")
        return {next(iter(self.inputs)): value}

    def prepare(self, model: nn.Module, example: Example) -> Row:
        """The encoded inputs of an example, with texts truncated to what the model can read."""
        return read_by(model, self.inputs, {role: field.encode(example[role]) for role, field in self.inputs.items()})

    def prepare_all(self, model: nn.Module, examples: Sequence[Example]) -> list[Row]:
        """The same for several examples, where a task can share some of the work."""
        return [self.prepare(model, example) for example in examples]

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        """How `predict` truncates long inputs, by the number of the input, counted from 0."""
        found = too_long(model, self.inputs, [self.example(value) for value in inputs])
        if any(type(field).truncated is not Field.truncated for field in self.inputs.values()):
            cuts = (self.cut(self.prepare(model, self.example(value))) for value in inputs)
            found |= {number: f"a {cut}: the rest is not read" for number, cut in enumerate(cuts) if cut is not None}
        return found

    def shown_in_part(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        """How `explain` truncates long inputs, by the number of the input, counted from 0."""
        return self.truncated(model, inputs)

    def unknown(self, inputs: Sequence[Any], answers: Sequence[Answer] | None = None) -> dict[int, list[str]]:
        """The parts of each input that did not occur in the training data, by the number of the input.

        Args:
            inputs: as for `predict`.
            answers: to these inputs, if known: words that they copy from an input do not count.
        """
        found: dict[int, list[str]] = {}
        for number, value in enumerate(inputs):
            example = self.example(value)
            strange = [part for role, field in self.inputs.items() for part in field.unknown(example[role])]
            if strange:
                found[number] = strange
        return found

    def is_empty(self, example: Example, row: Row | None = None) -> bool:
        """Whether an example has nothing in any of its inputs.

        Args:
            example: its values.
            row: the same, encoded.
        """
        values = [(example.get(role), field.blank) for role, field in self.inputs.items()]
        return all(value is None or (blank is not None and value == blank) for value, blank in values)

    def length(self, example: Example) -> int:
        """The length of an input for figures by length: tokens, frames."""
        return sum(field.size(field.encode(example[role])) for role, field in self.inputs.items())

    def save(self, folder: Path) -> None:
        """Saves what the fields learned, each in its own folder."""
        for role, field in self.fields.items():
            (folder / role).mkdir(exist_ok=True)
            field.save(folder / role)

    def load(self, folder: Path) -> None:
        """Loads what `save` wrote into a task constructed with the same arguments."""
        for role, field in self.fields.items():
            field.load(folder / role)
        self._share()
