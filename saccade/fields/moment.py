"""Points in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import torch

from saccade.data.cell import Cell, shown
from saccade.fields.base import Field, Padded, fields

MILLISECONDS = 1e11
"""Numbers beyond this are milliseconds: as seconds, it would be the year 5138."""


@fields.register("moment")
class Moment(Field):
    """A point in time: seconds or milliseconds since 1970, or an ISO 8601 date. It may be missing.

    `2016-03-09` and `2016-03-09 20:15:00` are in UTC, unless they name another zone. A value is in seconds.
    """

    optional = True

    def read(self, raw: Any, cell: Cell) -> float | None:
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return None
        value = _seconds(raw)
        if not math.isfinite(value):
            fix = "Write seconds since 1970, or a date such as 2016-03-09 or 2016-03-09T20:15:00."
            raise cell.bad(f"the {cell.role} is not a point in time but {shown(raw)}", fix)
        return value

    def encode(self, value: float | None) -> float:
        return math.nan if value is None else value

    def size(self, encoded: float) -> int:
        return 1

    def pad(self, encoded: Sequence[float], generator: torch.Generator | None = None) -> Padded:
        return {"values": torch.tensor(list(encoded), dtype=torch.float64)}

    def portable(self) -> dict[str, Any]:
        return {"kind": "moment", "optional": True}

    def show(self, value: float | None) -> str:
        if value is None:
            return ""
        try:
            return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
        except (ValueError, OverflowError, OSError):
            return f"{value:g} s"


def _seconds(raw: Any) -> float:
    """The seconds since 1970 that a raw value stands for; NaN if it is not a point in time."""
    if isinstance(raw, datetime):
        return (raw if raw.tzinfo is not None else raw.replace(tzinfo=UTC)).timestamp()
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return math.nan
    try:
        number = float(raw)
    except OverflowError:
        return math.nan
    except ValueError:
        try:
            return _seconds(datetime.fromisoformat(str(raw).strip()))
        except (ValueError, OverflowError):
            return math.nan
    return number / 1000.0 if abs(number) > MILLISECONDS else number
