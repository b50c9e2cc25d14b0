"""How much of its texts a model reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from saccade.fields import Field, Text, WordPieces
from saccade.layers.limits import fewest, most_keys, most_positions
from saccade.models.base import TextEncoder


def most_tokens(model: nn.Module) -> int | None:
    """The most tokens of a text, without its end, that a model has positions for; None without a limit."""
    most = model.longest() if isinstance(model, TextEncoder) else fewest([most_positions(model), most_keys(model)])
    return None if most is None else most - 1


def read_by(model: nn.Module, inputs: Mapping[str, Field], row: Mapping[str, Any]) -> dict[str, Any]:
    """An encoded example with its texts cut to what a model reads."""
    most = most_tokens(model)
    if most is None:
        return dict(row)
    return {r: inputs[r].clip(each, most) if isinstance(inputs[r], Text) else each for r, each in row.items()}


def too_long(model: nn.Module, inputs: Mapping[str, Field], examples: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Descriptions of texts that are too long for a model, by the number of the example, counted from 0."""
    most = most_tokens(model)
    found: dict[int, str] = {}
    for role, field in inputs.items():
        for number, example in enumerate(examples if most is not None and isinstance(field, Text) else ()):
            tokens = len(field.encode(example[role])) - 1
            if most is not None and tokens > most:
                found[number] = f"{tokens:,} {field.unit}, but the model only reads the first {most:,}"
    return found


def check_lengths(model: nn.Module, inputs: Mapping[str, Field]) -> None:
    """Raises `ValueError` if training keeps texts that are longer than a model can read."""
    most = most_tokens(model)
    for role, field in inputs.items():
        if isinstance(field, Text) and most is not None and field.max_length > most:
            raise ValueError(
                f"the model's {most + 1} positions are too few for a {role} of max_length={field.max_length} and its "
                f"end: set model.max_length to {field.max_length + 1} or more, or max_length of {role} to {most} or "
                "less."
            )
        if isinstance(field, WordPieces) and most is not None and field.max_length > most + 1:
            raise ValueError(
                f"the model's {most + 1} positions are too few for a {role} of max_length={field.max_length}: set "
                f"model.max_length to {field.max_length} or more, max_length of {role} to {most + 1} or less, or a "
                "model.window, in which longer texts are read."
            )
