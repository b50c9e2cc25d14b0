"""Numbers."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from saccade.artifacts import JsonObject, read_json
from saccade.data.cell import Cell
from saccade.fields.base import Field, Padded, fields

FILE = "number.json"
SMALLEST, LARGEST = math.ulp(0.0), sys.float_info.max
MOST = 1e30
"""The largest number that is accepted: squares of larger ones would overflow in a model."""


@fields.register("number")
class Number(Field):
    """A number, such as a rating or a price; models see it scaled to mean 0 and standard deviation 1."""

    holds = "number"

    def __init__(self) -> None:
        self.mean = 0.0
        self.deviation = 1.0

    def read(self, raw: Any, cell: Cell) -> float:
        try:
            value = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            fix = "Write a number such as 3.5, or skip such rows with --data.bad_rows skip."
            raise cell.bad(f"the {cell.role} is not a finite number but {raw!r:.40}", fix)
        if abs(value) > MOST:
            fix = "Correct it, divide the whole column, or skip such rows with --data.bad_rows skip."
            raise cell.bad(f"the {cell.role} {value:.4g} is too large: numbers may be from -1e30 to 1e30", fix)
        return value

    def fit(self, values: Iterable[float]) -> None:
        count, mean, squares = 0, 0.0, 0.0
        for value in values:  # Welford's algorithm: one pass, no cancellation
            count += 1
            step = value - mean
            mean += step / count
            squares += step * (value - mean)
        self.mean = mean
        self.deviation = math.sqrt(squares / count) if count and squares > 0.0 else 1.0

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps({"mean": self.mean, "deviation": self.deviation}), encoding="utf-8")

    def load(self, folder: Path) -> None:
        found = JsonObject(read_json(folder / FILE), str(folder / FILE))
        self.mean = float(found.take("mean", float, least=-LARGEST, most=LARGEST))
        self.deviation = float(found.take("deviation", float, least=SMALLEST, most=LARGEST))

    def encode(self, value: float) -> float:
        return (value - self.mean) / self.deviation

    def decode(self, encoded: float) -> float:
        """The number that was encoded."""
        return encoded * self.deviation + self.mean

    def pad(self, encoded: Sequence[float], generator: torch.Generator | None = None) -> Padded:
        return {"values": torch.tensor(list(encoded), dtype=torch.float32)}

    def show(self, value: float) -> str:
        return f"{value:.4g}"

    def learned(self) -> str:
        return f"mean {self.mean:.4g}, deviation {self.deviation:.4g}"
