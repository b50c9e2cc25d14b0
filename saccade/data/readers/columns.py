"""Which column of the data plays which role."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.data.readers.likely import UNKNOWN, Kind, likely_columns

Column = str | int | list[str | int]
"""A column's name, its number counted from 0, or a list of columns whose values make up one role."""

Record = Mapping[str, Any] | Sequence[Any]
"""A row: by name, or by position."""

ABSENT = object()

LONGEST_NAME = 4
"""Words of a column's name; a cell with more is probably an example's."""


class Columns:
    """The columns that the roles of a task take.

    Args:
        given: from roles to columns, as the user wrote them; None means by position or equal names.
        roles: the roles wanted, in order.
        optional: those that may be missing from the data.
        paragraphs: whether the values of plain text files are paragraphs, with empty lines between them, and not lines.
        kinds: what the cells of roles are like, for advice.
        unread: further roles, whose columns may follow without being read.
    """

    def __init__(
        self,
        given: Mapping[str, Column] | None,
        roles: Iterable[str],
        *,
        optional: Collection[str] = (),
        paragraphs: bool = False,
        kinds: Mapping[str, Kind] | None = None,
        unread: Collection[str] = (),
    ) -> None:
        self.paragraphs = paragraphs
        self.kinds = kinds or {}
        self.roles = tuple(roles)
        self.optional = frozenset(optional)
        self.required = tuple(role for role in self.roles if role not in self.optional)
        self.read_widths = {len(self.required), len(self.roles)}
        """How many columns a table has that has nothing else."""
        self.usual_widths = self.read_widths | {len(self.required) + len(unread)}
        """How many columns a table has that are read in their order."""
        self.given = None if given is None else {role: given[role] for role in self.roles if role in given}
        missing = [role for role in self.required if self.given is not None and role not in self.given]
        if missing:
            strange = [str(role) for role in given or () if role not in self.roles]
            close = suggestion(strange, self.roles)
            short = " ".join(f"--data.{role} COLUMN" for role in missing)
            add = f" Add {','.join(f'{role}=COLUMN' for role in missing)} (in training, {short} does the same)."
            raise DataError(
                f"--data.columns does not say which column is the {' and which the '.join(missing)}. "
                f"It has: {', '.join(map(str, given or ()))}.{close or add}"
            )

    @property
    def by_name(self) -> bool:
        """Whether a column is given by its name."""
        return any(isinstance(column, str) for column in self.mentioned())

    def first_read(self) -> str:
        """Says that the first columns are read, and as what."""
        return f"the first {'is' if len(self.required) == 1 else 'are'} read as {' and '.join(self.required)}"

    def mentioned(self) -> list[str | int]:
        """The single columns that are given."""
        return [column for given in (self.given or {}).values() for column in parts(given)]

    def example_named(self, header: Sequence[str], rows: Sequence[Sequence[Any]] = ()) -> str:
        """How to name the columns of a header: those given by number, or else the likeliest, given the first rows."""
        several = [parts((self.given or {}).get(role, "")) for role in self.required]
        numbered = all(isinstance(place, int) and place < len(header) for place in itertools.chain(*several))
        if not numbered:
            return self.example(list(self.likely(header, rows).values()))
        return self.example(["+".join(header[int(place)] for place in each) for each in several])

    def example_instead(self, lost: Collection[str], names: Sequence[str], rows: Sequence[Sequence[Any]] = ()) -> str:
        """How to name other columns for the roles that lost theirs: the likeliest, given the first rows."""
        likely, found = self.likely(names, rows), []
        for role in self.required:
            given = parts((self.given or {})[role])
            instead = likely[role] if len(given) == 1 else UNKNOWN
            found.append(instead if role in lost else "+".join(map(str, given)))
        return self.example(found)

    def likely(self, header: Sequence[str], rows: Sequence[Sequence[Any]] = ()) -> dict[str, str]:
        """The likely column of each role that must have one."""
        return likely_columns({role: self.kinds.get(role, "") for role in self.required}, header, rows)

    def example_numbered(self) -> str:
        """How to give columns by number: as many for each role as the user gave by name."""
        places = itertools.count()
        several = [parts((self.given or {}).get(role, 0)) for role in self.required]
        return self.example(["+".join(str(next(places)) for _ in each) for each in several])

    def example_further(self, rows: Sequence[Sequence[Any]]) -> str:
        """How to give columns of a table with more than are needed by number: the likeliest, given the first rows."""
        taken = list(self.likely([str(place) for place in range(len(rows[0]))], rows).values())
        first = [str(place) for place in range(len(taken))]  # which are read anyway
        return self.example(taken if taken != first else [UNKNOWN] * len(taken))

    def example(self, names: Sequence[str | int]) -> str:
        """How to say which column is which, with these columns as an example."""
        pairs = ",".join(f"{role}={name}" for role, name in zip(self.required, names, strict=False))
        return f"--data.columns {pairs if ' ' not in pairs else repr(pairs)}"


def check_columns(columns: Any) -> dict[str, Column] | None:
    """Checks and returns the `columns` of a configuration."""
    if columns is None:
        return None
    if not isinstance(columns, Mapping) or not columns:
        raise DataError(not_columns(columns))
    for role, column in columns.items():
        single = parts(column)
        if not single or not all(_is_column(one) for one in single):
            raise DataError(
                f"--data.columns: {role!r:.60} takes the name of a column, its number counted from 0, or a list of "
                f"these; got {column!r:.60}."
            )
    return dict(columns)


def not_columns(given: Any, roles: Sequence[str] = ()) -> str:
    """The message for columns without the roles that they play; names alone are given to the roles in their order."""
    roles = roles or ("source", "target")
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else []
    known = names if len(names) <= len(roles) and all(names) and "=" not in str(given) else []
    columns = [*known, *["COLUMN"] * (len(roles) - len(known))]
    example = ",".join(map("{}={}".format, roles, columns))
    return f"--data.columns takes roles with their columns, as {example}; got {given!r:.60}."


def parts(column: Column) -> list[str | int]:
    """The single columns of a role."""
    return list(column) if isinstance(column, list | tuple) else [column]


def _is_column(column: Any) -> bool:
    return isinstance(column, str) or (isinstance(column, int) and not isinstance(column, bool) and column >= 0)


def by_position(columns: Columns, width: int) -> dict[str, Column]:
    """The first columns in the order of the roles; optional roles take part where there is one column for each."""
    roles = columns.roles if width == len(columns.roles) else columns.required
    return {role: place for place, role in enumerate(roles)}


def positions(
    columns: Columns, names: Sequence[str] | None, file: str, rows: Sequence[Sequence[Any]] = ()
) -> dict[str, Column]:
    """The given columns as positions, looked up in the names where they are given by name.

    Args:
        columns: the given ones.
        names: those of the header, if there is one.
        file: where they are.
        rows: the first ones, for advice.
    """
    found: dict[str, Column] = {}
    wanted = [one for role in columns.required for one in parts((columns.given or {}).get(role, []))]
    lost = [one for one in dict.fromkeys(wanted) if isinstance(one, str) and one not in (names or [one])]
    if lost and names is not None:
        raise not_in_header(lost, columns, names, file, rows)
    for role, column in (columns.given or {}).items():
        try:
            places = [position(one, columns, names, file) for one in parts(column)]
        except DataError:
            if role in columns.optional:
                continue
            raise
        found[role] = list[str | int](places) if isinstance(column, list | tuple) else places[0]
    return found


def position(column: str | int, columns: Columns, names: Sequence[str] | None, file: str) -> int:
    """The position of one column."""
    if isinstance(column, int):
        if names is not None and column >= len(names):
            count = f"{len(names)} column{'s' if len(names) != 1 else ''}"
            raise DataError(
                f"{file} has {count}, counted from 0: there is no column {column}. Say which to read, as "
                f"{columns.example_numbered()}."
            )
        return column
    if names is None:
        raise DataError(
            f"{file} is read without a header, so there is no column {column!r}: give its number, counted from 0, "
            f"as {columns.example_numbered()}, or set --data.header yes."
        )
    if list(names).count(column) > 1:
        raise DataError(f"{file} has more than one column {column!r}: give its number, counted from 0.")
    if column not in names:
        raise not_in_header([column], columns, names, file)
    return list(names).index(column)


def not_in_header(
    lost: Sequence[str], columns: Columns, header: Sequence[str], file: str, rows: Sequence[Sequence[Any]] = ()
) -> DataError:
    """The error for columns that the header does not name; the first line may not be a header at all."""
    close = suggestion(lost, header)
    alone = all(len(parts(column)) == 1 for column in (columns.given or {}).values())
    names = all(len(cell.split()) <= LONGEST_NAME for cell in header)  # else the first line is hardly a header
    enough = alone and names and len(header) >= len(columns.required)
    likely = f", as {columns.example_named(header, rows)}" if enough and not close else ""
    name = f" Name the columns{likely}." if likely else ""
    by_number = columns.likely([str(place) for place in range(len(header))], [header, *rows])
    others = alone and any(name not in (str(place), UNKNOWN) for place, name in enumerate(by_number.values()))
    example = columns.example(list(by_number.values())) if others else columns.example_numbered()
    numbers = f" If the file has no header, give numbers counted from 0: {example}."
    advice = name if close else name + numbers
    return DataError(f"{file} has no column {_either(lost)}.{close} Its header has: {listed(header)}.{advice}")


def listed(names: Sequence[str]) -> str:
    """Names for an error message, cut where they are long or many."""
    named = [repr(name if len(name) <= 30 else f"{name[:27]}...") for name in names[:8]]
    return ", ".join(named) + (", ..." if len(names) > 8 else "")


def unknown(lost: Sequence[str], choices: Iterable[Any], file: str, how: str = "") -> DataError:
    """The error for columns that do not exist, and how to name others."""
    names = sorted(map(str, choices))
    close = suggestion(lost, names)
    return DataError(f"{file} has no column {_either(lost)}.{close} Choose from: {listed(names)}.{how}")


def suggestion(lost: Sequence[str], names: Sequence[str]) -> str:
    """The names that the user probably meant; among the first thousand, since comparing names takes time."""
    known = [name for name in names[:1000] if len(name) < 100]
    close = {column: difflib.get_close_matches(column[:100], known, n=1) for column in lost[:20]}
    meant = [(column, found[0]) for column, found in close.items() if found]
    if len(lost) == 1 or not meant:
        return "".join(f" Did you mean {name!r}?" for _, name in meant)
    return f" Did you mean {', '.join(f'{name!r} for {column!r}' for column, name in meant)}?"


def _either(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names[:20]))


def pick(
    record: Record, columns: Mapping[str, Column], optional: Collection[str], file: str, line: int
) -> dict[str, Any]:
    """The roles' raw values; an optional role without a value is left out."""
    found: dict[str, Any] = {}
    for role, column in columns.items():
        if isinstance(column, list | tuple):
            value: Any = [reach(record, one) for one in column]
            lacking = [one for one, part in zip(column, value, strict=True) if part is ABSENT]
        else:
            value = reach(record, column)
            lacking = [column] if value is ABSENT else []
        if not lacking and not (value is None and role in optional):
            found[role] = value
        elif role not in optional:
            has = listed(list(map(str, record))) if isinstance(record, Mapping) else f"{len(record)} columns"
            raise BadRow(file, line, f"there is no column {lacking[0]!r}", f"The row has: {has or 'nothing'}.")
    return found


def reach(record: Any, column: str | int) -> Any:
    """The value of a column, or ABSENT; `translation.en` reaches into the column `translation`."""
    if isinstance(column, int):
        return record[column] if not isinstance(record, Mapping) and column < len(record) else ABSENT
    if not isinstance(record, Mapping):
        return ABSENT
    if column in record:
        return record[column]
    outer, _, inner = column.partition(".")
    return reach(record[outer], inner) if inner and isinstance(record.get(outer), Mapping) else ABSENT
