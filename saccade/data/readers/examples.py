"""Examples from files of any format."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from saccade.data.errors import BadRow, DataError, Skipped
from saccade.data.readers.columns import Columns
from saccade.data.readers.delimited import csv_rows, read_delimited, tsv_rows
from saccade.data.readers.generated import DATES, read_dates
from saccade.data.readers.hub import PREFIX, read_dataset
from saccade.data.readers.jsonl import read_jsonl
from saccade.data.readers.lines import suffix
from saccade.data.readers.parallel import read_parallel
from saccade.data.readers.parquet import read_parquet

Files = str | Path | Sequence[str | Path]
Located = Iterator[tuple[int, dict[str, str]]]
TABLES = (".tsv", ".csv", ".jsonl", ".parquet")


class Examples:
    """Examples from files, read as a stream each time they are iterated over.

    | files | format |
    | --- | --- |
    | `pairs.tsv` | columns between tabs, nothing quoted |
    | `pairs.csv` | columns between commas, quoted as in RFC 4180 |
    | `pairs.jsonl` | one JSON object a line; `translation.en` reaches into a nested one |
    | `pairs.parquet` | a Parquet table |
    | `train.en,train.de`, or a list of the two | plain text files of any other suffix, line by line |
    | `hf:folder:train`, `hf:name@config:train` | a dataset of the `datasets` library, in a folder or on the hub |
    | `dates:train:20000` | the built-in dates (see `saccade.data.dates`): a split, how many, and a seed if not 0 |

    Text files may be gzipped (`pairs.tsv.gz`). A list of tables or of comma-joined text files is read one after the
    other. Text is UTF-8.

    Args:
        files: one of the above, or a list.
        columns: from roles to columns, by name or by number from 0: `{"source": "en", "target": "de"}`. A mere list
            of roles stands for columns 0, 1, ... of TSV, CSV and text files and for equal names elsewhere. Text files
            are named by their suffix ("en" for `train.en`).
        header: whether TSV and CSV files begin with a header. If it is None, they do if a column is given by name.
        bad_rows: what to do about a row with a wrong number of columns, undecodable bytes or an empty side: "error"
            raises a `BadRow`, "skip" leaves it out, counted and listed in `skipped`.
    """

    def __init__(
        self,
        files: Files,
        columns: Columns | Sequence[str] = ("source", "target"),
        *,
        header: bool | None = None,
        bad_rows: Literal["error", "skip"] = "error",
    ) -> None:
        if bad_rows not in ("error", "skip"):
            raise ValueError(f"bad_rows is 'error' or 'skip', got {bad_rows!r}.")
        self.columns, self.header, self.bad_rows = columns, header, bad_rows
        self.sources = groups(files)
        self.skipped = Skipped()
        for source in self.sources:  # errors of configuration show before any work starts
            next(self._read(source), None)

    def __iter__(self) -> Iterator[dict[str, str]]:
        for _, _, example in self.located():
            yield example

    def located(self) -> Iterator[tuple[str, int, dict[str, str]]]:
        """The examples with their file and line."""
        self.skipped = Skipped()
        for source in self.sources:
            for line, example in self._read(source):
                yield ",".join(source), line, example

    def fingerprint(self) -> str:
        """Changes whenever the files or the way they are read do; for storing what was made of them."""
        marks = [repr(self.columns), repr(self.header), self.bad_rows]
        for name in (name for source in self.sources for name in source):
            path = Path(name)
            marks.append(f"{name} {path.stat().st_size} {path.stat().st_mtime_ns}" if path.is_file() else name)
        return hashlib.blake2b("\n".join(marks).encode(), digest_size=16).hexdigest()

    def _read(self, source: tuple[str, ...]) -> Located:
        return reader(source, self.header)(columns=self.columns, bad=self._bad)

    def _bad(self, row: BadRow) -> None:
        if self.bad_rows == "error":
            raise row
        self.skipped.add(row)


def read_examples(
    files: Files,
    columns: Columns | Sequence[str] = ("source", "target"),
    *,
    header: bool | None = None,
    bad_rows: Literal["error", "skip"] = "error",
) -> Examples:
    """See `Examples`."""
    return Examples(files, columns, header=header, bad_rows=bad_rows)


def reader(source: tuple[str, ...], header: bool | None) -> Callable[..., Located]:
    """The function that reads one source."""
    if source[0].startswith(PREFIX):
        return partial(read_dataset, source[0])
    if source[0].startswith(DATES):
        return partial(read_dates, source[0])
    paths = [Path(name) for name in source]
    kind = suffix(paths[0])
    if kind in (".tsv", ".csv"):
        return partial(read_delimited, paths[0], rows=tsv_rows if kind == ".tsv" else csv_rows, header=header)
    if kind == ".jsonl":
        return partial(read_jsonl, paths[0])
    if kind == ".parquet":
        return partial(read_parquet, paths[0])
    return partial(read_parallel, paths)


def groups(files: Files) -> list[tuple[str, ...]]:
    """The sources: each a table of its own or several text files that belong together."""
    names = [str(files)] if isinstance(files, str | Path) else [str(name) for name in files]
    if not names:
        raise DataError("There are no files to read.")
    plain = [is_plain(name) for name in names]
    if len(names) > 1 and any(plain):
        if not all(plain):
            raise DataError(f"Join text files that belong together by a comma ('a.en,a.de'); got the list {names}.")
        names = [",".join(names)]
    found = []
    for name in names:
        special = name.startswith((PREFIX, DATES))
        source = (name,) if special or Path(name).exists() else tuple(part.strip() for part in name.split(","))
        for part in source if not special else ():
            check_file(part)
        if len(source) > 1 and any(suffix(part) in TABLES for part in source):
            raise DataError(f"Only text files are joined by commas, tables are given as a list; got {name!r}.")
        found.append(source)
    return found


def is_plain(name: str) -> bool:
    """Whether it is a text file that needs another one."""
    special = name.startswith((PREFIX, DATES))
    return not special and "," not in name and suffix(name) not in TABLES


def similar_file(path: Path) -> str | None:
    """The name of a file beside it that is nearly its own: what stands before the suffix counts, which many share."""
    siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    stem = path.name.partition(".")[0]
    near = [name for name in siblings if difflib.get_close_matches(stem, [name.partition(".")[0]], cutoff=0.75)]
    return next(iter(difflib.get_close_matches(path.name, near, n=1)), None)


def check_file(name: str) -> None:
    """Refuses what is not a file, with the nearest one there is."""
    path = Path(name)
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{name} is empty.")
    if path.is_dir():
        raise DataError(f"{name} is a folder: if it holds a dataset, write {PREFIX + name!r}.")
    if not path.exists():
        close = similar_file(path)
        hint = f" Did you mean {path.parent / close}?" if close else ""
        if not path.parent.is_dir():
            hint = f" There is no folder {path.parent}."
        raise FileNotFoundError(f"There is no file {name}.{hint}")
