"""What a field is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.data.readers.likely import Kind
from saccade.data.vectors import Vectors
from saccade.fields.looking import Look, Seen, last_pooling, maps_over, picked_by
from saccade.interpretation.explorer import Axis, Map, TextAxis
from saccade.interpretation.recording import Trace
from saccade.registry import Registry

Padded = dict[str, Tensor]
"""The tensors of a batch, batch first: `values`, `mask` where lengths differ (bool, True = real), and others."""


class Field:
    """One column of the user's data: how raw cells become values, values become arrays, and arrays become batches.

    The constructor is the configuration. What is learned from the data (a vocabulary, a mean, the names of labels)
    comes from `fit`, and `save` and `load` keep it. A new field implements `read`, `encode` and `pad`, and whatever
    else it needs.
    """

    decodes: bool = False
    """Whether `pad` does real work, such as decoding files: batches are then prepared in the background."""

    suffixes: tuple[str, ...] = ()
    """Suffixes of files that are values themselves, such as `.wav`; other files are tables of values."""

    unit: str = "positions"
    """The unit in which the size of a value is counted: tokens, frames."""

    holds: Kind = ""
    """What its cells are like, for advice on columns."""

    repeats: bool = False
    """Whether rows with equal values are several right answers for one input, as with a picture and its captions."""

    paragraphs: bool = False
    """Whether a value spans all lines of a plain text file up to an empty one, instead of a single line."""

    optional: bool = False
    """Whether its column may be missing from the data; its values are then None."""

    gathers: bool = False
    """Whether it reads long tables: if its role has several columns, a value spans many rows."""

    blank: Any = None
    """The value of an empty input in prediction; None if that is an error, as it always is in training."""

    vectors: Vectors | None = None
    """The initial embeddings of the vocabulary; None leaves them to the model."""

    @property
    def longest(self) -> int | None:
        """The maximum number of positions of a training example; None without a limit."""
        return None

    def read(self, raw: Any, cell: Cell) -> Any:
        """The value of a raw cell; `cell.bad(problem, fix)` is the error for one that cannot be used."""
        raise NotImplementedError

    def check_columns(self, role: str, count: int) -> None:
        """Raises `DataError` if the values of a role cannot be made of so many columns."""

    def gather(self, raws: Sequence[Any], name: str, cell: Cell) -> Any:
        """The raw cell of an example in a long table: by default the one that all its rows share.

        Args:
            raws: the raw cells of its rows, in order.
            name: what its rows share, such as the number of a patient.
            cell: the first of them.
        """
        different = next((raw for raw in raws if raw != raws[0]), raws[0])
        if different != raws[0]:
            raise cell.bad(
                f"the rows of {name!r:.40} have different values of the {cell.role}: {raws[0]!r:.40} and "
                f"{different!r:.40}",
                "Give all rows of an example the same value.",
            )
        return raws[0]

    def fit(self, values: Iterable[Any]) -> None:
        """Learns from the values of the training data, in one pass."""

    def adopt(self, folder: Path) -> bool:
        """Takes over what another model's field learned, for a model that starts from its weights.

        After that, `fit` leaves it as it is. By default a field learns from the data, and this does nothing.

        Args:
            folder: what `save` wrote for a field of that model, or the folder of another library's model.
        """
        return False

    def share(self, other: Field) -> None:
        """From now on, uses what another field of this kind has learned."""
        raise ValueError(f"{type(self).__name__} has nothing to share.")

    def sizes(self) -> dict[str, int]:
        """The sizes that a model needs: `vocab`, `dim` or `classes`; placeholders before `fit`."""
        return {}

    def identity(self, value: Any) -> Any:
        """A key that equal values share: examples with equal inputs stay together in a split."""
        return value

    def strata(self, value: Any) -> Sequence[str]:
        """The labels whose proportions a split preserves; none by default."""
        return ()

    def save(self, folder: Path) -> None:
        """Writes what `fit` learned into a folder that exists."""

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote; everything is checked, since the folder may come from anyone."""

    def vocabulary(self) -> list[str]:
        """What each id of the vocabulary stands for, "" for special ids; needed for `vectors`."""
        raise NotImplementedError

    def texts(self, encoded: Any) -> Iterable[Sequence[int]]:
        """The ids of an encoded value, as texts in which neighbouring words belong together; needed for `vectors`."""
        return [encoded]

    def encode(self, value: Any) -> Any:
        """The value as Arrow stores it: numbers, text, bytes, lists or dictionaries of these; large data as paths."""
        raise NotImplementedError

    def size(self, encoded: Any) -> int:
        """What an encoded value costs in the token budget of a batch."""
        return len(encoded) if isinstance(encoded, Sequence) and not isinstance(encoded, str | bytes) else 1

    def left_out(self, encoded: Any) -> str | None:
        """Why training leaves out an example with this value; None to keep it."""
        return None

    def truncated(self, encoded: Any) -> str | None:
        """Why a long value is only read in part ("more than max_words=100 words"); None if all of it is read."""
        return None

    def clip(self, encoded: Any, most: int) -> Any:
        """The value cut to at most this many positions, for models that read no more."""
        return encoded

    def pad(self, encoded: Sequence[Any], generator: torch.Generator | None = None) -> Padded:
        """The tensors of several values. With a generator, for training, they may be augmented."""
        raise NotImplementedError

    def axis(self, value: Any, length: int | None = None) -> Axis:
        """How the explorer draws the value; `length` is the number of positions if the model merges or cuts some."""
        return TextAxis(pieces=[self.show(value)])

    def position_names(self, value: Any, length: int | None = None) -> list[str]:
        """A name for each position of the axis, without drawing it."""
        return self.axis(value, length).names

    def codes(self, value: Any) -> Sequence[Sequence[str]]:
        """The names at each position, such as the codes of a visit; none by default.

        Training warns if they give away the answer.
        """
        return ()

    def words(self, value: Any, length: int | None = None) -> list[list[int]]:
        """The positions of each word of `show(value)`, where words are separated by spaces; none for other values.

        A word beyond the end of a value that was cut to a length has no positions.
        """
        return []

    def maps(self, value: Any, trace: Trace, answer: str, length: int | None = None) -> list[Map]:
        """Maps of each attention over the positions of the value while the model answered.

        Args:
            value: the only input of a batch of one.
            trace: what `record` saw.
            answer: the name of the row of an attention with one query.
            length: how many positions the model read, if that is known.
        """
        return maps_over(self.axis(value, length), trace, answer)

    def attended(self, values: Sequence[Any], trace: Trace, mask: Tensor | None = None) -> list[Seen]:
        """The attention that decided the answer, for each value of a batch.

        By default, the last pooling, averaged over heads and queries; None if the model has none. An attention with a
        query for each of many steps does not decide the answer on its own.

        Args:
            values: of one batch.
            trace: what `record` saw.
            mask: bool (batch, positions), the positions that the model read, where there are several inputs or where a
                value may have been cut.
        """
        look = self.look(trace, len(values), mask)
        if look is None:
            return []
        weights, picked = look.weights(trace, len(values)).cpu(), picked_by(trace[look.path])
        lengths = [None] * len(values) if mask is None else mask.sum(1).tolist()
        names = [self.position_names(value, length) for value, length in zip(values, lengths, strict=True)]
        return [Seen(own, row[: len(own)], picks) for own, row, picks in zip(names, weights, picked, strict=True)]

    def look(self, trace: Trace, count: int, mask: Tensor | None = None) -> Look | None:
        """Which attention `attended` reads in a batch of `count` values; None without one."""
        return last_pooling(trace, count, mask)

    def portable(self) -> dict[str, Any]:
        """What a program without Saccade needs in order to read values as this field does, in JSON's types.

        `kind` names the module of `saccade/export/runner` that reads them. A field without one cannot be exported.
        """
        raise ValueError(f"the field {type(self).__name__} cannot be read outside Saccade")

    def network(self) -> nn.Module | None:
        """An untrained network between the arrays of such a program and the values of `pad`."""
        return None

    def fixed(self) -> dict[str, Tensor]:
        """The tensors of `pad` that are the same for all values, such as a graph, and are built into such a program."""
        return {}

    def stand_ins(self, count: int, length: int) -> Padded:
        """`count` made-up values to trace a model with, the longest of `length` positions, in that program's form."""
        raise NotImplementedError

    def show(self, value: Any) -> str:
        """The value in one line of text."""
        return str(value)

    def learned(self) -> str:
        """A short description of what was learned from the data ("7,812 pieces"); empty if nothing was."""
        return ""

    def leaks(self, values: Iterable[Any]) -> list[str]:
        """Why figures on these validation values may be better than on new ones."""
        return []

    def warnings(self, examples: int) -> list[str]:
        """Warnings about what was learned from this many examples."""
        return []

    def unknown(self, value: Any) -> list[str]:
        """The parts of a value that do not occur in the training data."""
        return []


fields: Registry[Field] = Registry("field", base=Field, home="saccade.fields")
