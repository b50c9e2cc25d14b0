"""Sources whose targets are not known: how much of them a model reads, and how much it may write."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torch import Tensor, nn

from saccade.data.special import EOS
from saccade.fields import Field, Text, plain
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Row
from saccade.tasks.generation.options import RANGES
from saccade.tasks.generation.sides import WORDS, SourceToTarget
from saccade.tasks.generation.writer import writer

READ = 1000
STRETCH = 4
"""Inputs are read up to STRETCH times the length of the longest training example, and at least up to READ positions."""


class UnseenSources(SourceToTarget):
    """A task that answers sources of any length, of which a model reads the beginning."""

    def prepare(self, model: nn.Module, example: Example) -> Row:
        return self.prepare_all(model, [example])[0]

    def prepare_all(self, model: nn.Module, examples: Sequence[Example]) -> list[Row]:
        most = {role: self.most_read(model, field) for role, field in self.inputs.items()}
        return [self._clipped(example, most) for example in examples]

    def _clipped(self, example: Example, most: dict[str, int]) -> Row:
        row = {role: field.clip(field.encode(example[role]), most[role]) for role, field in self.inputs.items()}
        extension = self.extension(example)
        if extension is not None:
            row[WORDS] = [*extension.said[: len(row["source"]) - 1], EOS]
        return row

    def most_read(self, model: nn.Module, field: Field | None = None) -> int:
        """How many positions of a source a model reads; of the first by default."""
        longest = (field or self.source).longest
        return most_read(model, 2**31 - 1 if longest is None else longest)

    def truncated(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        examples = [self.example(value) for value in inputs]
        found: dict[int, str] = {}
        for role, field in self.inputs.items():
            read, of = self.most_read(model, field), "" if len(self.inputs) == 1 else f" in {role}"
            text = isinstance(plain(field), Text)
            for number, example in enumerate(examples):
                value = example[role]
                # A piece has at least half a character: short texts need not be tokenised.
                if value is None or (text and 2 * len(value) <= read):
                    continue
                length = self._length(field, value)
                if length > read:
                    found[number] = f"{length:,} {field.unit}{of}, but the model only reads the first {read:,}"
        return found

    def most_tokens(self, positions: Tensor) -> Tensor:
        """The maximum length of an answer to inputs with this many positions, by default.

        Ten more than the longest training target, or than twice what the length of the input suggests; but no more than
        a user may ask for.
        """
        suggested = 2 * (self.length_ratio() * positions).ceil().long() + 10
        return suggested.clamp(min=self.longest_target + 10, max=RANGES["max_length"][1])

    def length_ratio(self) -> float:
        """How many tokens of a target to expect for each position of a source."""
        return max(1.0, self.target_ratio) if isinstance(self.source, Text) else self.target_ratio

    def unknown(self, inputs: Sequence[Any], answers: Sequence[Answer] | None = None) -> dict[int, list[str]]:
        found = super().unknown(inputs)
        if answers is None or not self.copying:
            return found
        for number in list(found):
            several = [answers[number], *answers[number].alternatives]
            written = {token for answer in several for token in getattr(answer, "tokens", [])}
            found[number] = self.lost(self.example(inputs[number]), written)
        return {number: parts for number, parts in found.items() if parts}

    def lost(self, example: Example, written: Collection[int]) -> list[str]:
        """The unknown parts of the inputs, without the words of a source that a text of these ids copies."""
        extension = self.extension(example)
        if extension is None:
            return super().unknown([example]).get(0, [])
        return extension.lost(written)

    def length(self, example: Example) -> int:
        return sum(self._length(field, example[role]) for role, field in self.inputs.items())

    @staticmethod
    def _length(field: Field, value: Any) -> int:
        size = field.size(field.encode(value))
        return size - 1 if isinstance(plain(field), Text) and size else size  # without the end


def most_read(model: nn.Module, trained: int) -> int:
    """How many positions of an input a model reads, if training examples had at most `trained`.

    Far beyond the lengths it was trained on, a model would take hours to write nothing useful.
    """
    positions = writer(model).longest_source()
    return min(max(READ, STRETCH * trained), *([] if positions is None else [positions]), 2**31 - 1)
