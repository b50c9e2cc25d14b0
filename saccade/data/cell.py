"""A raw value's place in the user's data, and how fields read text from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from saccade.data.errors import BadRow, conversion

SKIP = "Fill it in, or skip such rows with --data.bad_rows skip"


class Cell(NamedTuple):
    """The place of a raw value in the user's data.

    Args:
        file: the file, or a name for data in memory.
        line: line or row, counted from 1.
        role: the name by which the task knows the column: "source", "label", ...
        folder: the folder that relative paths in the cell start from: that of the table's file.
    """

    file: str
    line: int
    role: str
    folder: Path = Path()

    def bad(self, problem: str, fix: str) -> BadRow:
        """The error for a value that cannot be used."""
        return BadRow(self.file, self.line, problem, fix)


class FieldLike(Protocol):
    """Anything that turns raw values into values; see `saccade.fields`."""

    def read(self, raw: Any, cell: Cell) -> Any:
        """The value; raises `cell.bad(problem, fix)` for a raw value that cannot be used."""


def value_of(field: FieldLike, raw: Any, cell: Cell, *, blank: bool = False) -> Any:
    """The value that a field reads from a raw value.

    Args:
        field: of the cell's role.
        raw: the value as the reader found it.
        cell: its place, for error messages.
        blank: whether an empty text becomes the field's empty value, if it has one, instead of an error.
    """
    nothing = getattr(field, "blank", None)
    return nothing if blank and nothing is not None and is_blank(raw) else field.read(raw, cell)


def is_blank(raw: Any) -> bool:
    """Whether a raw value is missing or only white space, in each of its columns."""
    if isinstance(raw, list | tuple):
        return bool(raw) and all(map(is_blank, raw))
    return raw is None or (isinstance(raw, str) and not raw.strip())


def text_of(raw: Any, cell: Cell, *, may_be_empty: bool = False) -> str:
    """A raw value as text: a string in valid Unicode, or a whole number such as a label.

    Args:
        raw: the value as the reader found it.
        cell: its place, for error messages.
        may_be_empty: whether a missing or blank value is allowed.
    """
    if isinstance(raw, int) and not isinstance(raw, bool):
        return _digits(raw, cell)
    if raw is None:
        raw = ""
    if not isinstance(raw, str):
        kind = type(raw).__name__
        raise cell.bad(f"the {cell.role} is not text but {kind} ({shown(raw)})", "Store it as a string.")
    if not may_be_empty and (not raw or raw.isspace()):
        raise cell.bad(f"the {cell.role} is empty", f"{SKIP}.")
    if "\0" in raw:
        fix = f"If the file is UTF-16, convert it: {conversion(cell.file, 'UTF-16')}"
        raise cell.bad(f"the {cell.role} contains a NUL character", fix)
    try:
        raw.encode()
    except UnicodeEncodeError as error:
        raise _undecodable(raw[error.start : error.end], cell) from None
    return raw


def shown(value: Any, width: int = 40) -> str:
    """The beginning of a value, for an error message; a large one is never written out whole."""
    if isinstance(value, str | bytes):
        text = repr(value[:width])
        return f"{text}..." if len(value) > width else text
    if isinstance(value, bool | int | float) or value is None:
        return f"{value!r:.{width}}" if not isinstance(value, int) or value.bit_length() < 256 else "a huge integer"
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"of shape {tuple(shape)}"
    return f"of length {len(value)}" if hasattr(value, "__len__") else f"a {type(value).__name__}"


def _digits(number: int, cell: Cell) -> str:
    if number.bit_length() > 1024:  # Python refuses to write out very long integers
        raise cell.bad(f"the {cell.role} is an integer of more than 300 digits", "Store it as a string.")
    return str(int(number))


def _undecodable(surrogates: str, cell: Cell) -> BadRow:
    """The error for lone surrogates: bytes of a file that are not UTF-8, or half a character in a JSON string."""
    if all("\udc80" <= character <= "\udcff" for character in surrogates):
        found = surrogates.encode("utf-8", "surrogateescape")[:4]
        named = f"byte{'s' * (len(found) > 1)} {' '.join(f'0x{byte:02X}' for byte in found)}"
        fix = f"Convert the file, for example from Latin-1: {conversion(cell.file, 'LATIN1')}"
        return cell.bad(f"the {cell.role} is not UTF-8 ({named})", fix)
    half = f"\\u{ord(surrogates[0]):04x}"
    return cell.bad(f"the {cell.role} contains half a character ({half})", "Write both halves of the surrogate pair.")
