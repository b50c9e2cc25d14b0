"""The inputs of a command: values, files, folders or standard input, as the task's fields read them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.registry import nearest

if TYPE_CHECKING:
    from saccade.commands.options import TableOptions
    from saccade.data.corpus import Corpus
    from saccade.fields import Field
    from saccade.runs import Run
    from saccade.tasks import Example, Task

STANDARD_INPUT = "standard input"


def input_corpus(run: Run, tables: TableOptions, *, extras: Iterable[str] = ()) -> Corpus:
    """How tables of inputs are read: as the training data was, unless the user says otherwise; bad rows are errors.

    `extras` are further roles that are read where a table has them.
    """
    from saccade.data.corpus import Corpus

    trained, asked = run.plan.data, tables.reading(run.task.inputs)
    check_roles(run.task, asked.get("columns"))
    roles = {*run.task.inputs, *run.task.extras, *extras}
    known = {role: column for role, column in (trained.columns or {}).items() if role in roles}
    columns = {**known, **asked.pop("columns", {})} or None
    return Corpus(columns=columns, folds=trained.folds, group=trained.group, **{"header": trained.header, **asked})


def check_roles(task: Task, columns: dict[str, Any] | None) -> None:
    """Raises for a column whose role the task does not have: it would be ignored."""
    from saccade.configuration.blueprints import known as name_of
    from saccade.data.corpus import FOLD, GROUP

    known = dict.fromkeys([*task.fields, *task.scored, *task.extras, FOLD, GROUP])
    for role in columns or ():
        if role not in known:
            raise ValueError(f"--columns: {name_of(type(task))} reads no {role!r}.{nearest(role, known)}")


def named_inputs(task: Task, options: dict[str, Any], values: list[str] | None) -> list[str] | None:
    """Inputs given by a task's own options, as JSON; they are removed from the other options.

    Each role has one value, which counts for all inputs, or one for each input.

    Args:
        task: says which roles have options.
        options: of the command.
        values: inputs given by --input, which cannot be combined with these.
    """
    given = {role: found for role in task.named if (found := options.pop(role, None))}
    if not given:
        return values
    if values:
        raise ValueError(f"Give inputs with --{next(iter(given))}, or with --input, but not both.")
    count = max(map(len, given.values()))
    for role, found in given.items():
        if len(found) not in (1, count):
            raise ValueError(
                f"--{role} is given {len(found)} times, but another option {count} times: give both equally often."
            )
    several = {role: found * (count if len(found) == 1 else 1) for role, found in given.items()}
    return [json.dumps({role: found[number] for role, found in several.items()}) for number in range(count)]


def check_one_source(values: Sequence[str] | None, paths: Sequence[str]) -> None:
    """Raises if inputs are given in two ways."""
    if values and paths:
        raise ValueError("Give inputs with --input, or files to read them from, but not both.")


def read_inputs(
    task: Task,
    corpus: Corpus,
    paths: Sequence[str],
    values: Sequence[str] | None = None,
    *,
    extras: Mapping[str, Field] | None = None,
) -> Iterator[Example]:
    """The examples in files and folders, or the given values; standard input if there are neither.

    `extras` are further fields, which are read where the columns of a table name them.
    """
    if values:
        yield from _from_lines(task, (os.fsencode(value) for value in values), "--input")
    elif not paths:
        yield from _from_lines(task, _standard_input(), STANDARD_INPUT)
    for path in paths:
        try:
            yield from _from_path(task, corpus, path, {**task.extras, **(extras or {})})
        except FileNotFoundError as error:
            if error.errno is None:  # ours
                raise FileNotFoundError(f'{error} To give the input itself, use --input "..."') from None
            raise


def chunks(examples: Iterable[Any], count: int) -> Iterator[list[Any]]:
    """Splits examples into chunks of this size."""
    remaining = iter(examples)
    while chunk := list(islice(remaining, count)):
        yield chunk


def _from_path(task: Task, corpus: Corpus, path: str, extras: Mapping[str, Field]) -> Iterator[Example]:
    """A file that is a value itself, a folder of such files, or a table of values."""
    from saccade.data.cell import Cell
    from saccade.data.errors import BadRow, Skipped
    from saccade.data.readers.files import missing
    from saccade.data.readers.folder import NAMES

    role, field = next(iter(task.inputs.items()))
    place = Path(path)
    files = [place] if place.suffix.lower() in field.suffixes else []
    if path and place.is_dir() and not field.suffixes and not {*map(str, (corpus.columns or {}).values())} & {*NAMES}:
        raise ValueError(
            f"{path} is a folder, but a {role} is not a file: name the tables or texts in it. To read the "
            f"names of its files as the {role}, add --columns {role}=name."
        )
    if place.is_dir() and field.suffixes:
        files = sorted(file for file in place.rglob("*") if file.suffix.lower() in field.suffixes)
        if not files:
            raise ValueError(f"{path} contains no file that ends in {', '.join(field.suffixes)}.")
    if not files:
        unread = [role for role in task.targets if role not in extras]
        examples = corpus.read(path, task.inputs, extras=extras, check=task.check_example, blank=True, unread=unread)
        yield from examples
        if examples.skipped.count:
            print(examples.skipped.report(), file=sys.stderr)
        return
    if not place.exists():
        raise missing(place)
    skipped = Skipped()
    for file in files:
        try:
            value = field.read(str(file), Cell(str(file), 0, role, Path()))
        except BadRow as bad:
            if corpus.bad_rows == "error":
                raise bad.with_advice() from None
            skipped.add(bad)
        else:
            yield {role: value}
    if skipped.count:
        print(skipped.report(), file=sys.stderr)


def _standard_input() -> Iterator[bytes]:
    """The lines of standard input; one that is too long is cut just beyond the limit, since it may never end."""
    from saccade.data.readers.lines import LONGEST

    return iter(lambda: sys.stdin.buffer.readline(LONGEST + 1), b"")


def _from_lines(task: Task, lines: Iterable[bytes], place: str) -> Iterator[Example]:
    from saccade.data.cell import Cell, value_of
    from saccade.data.readers.lines import LONGEST

    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST:
            raise ValueError(f"Line {number} of the input is longer than {LONGEST >> 20} MiB. Is this text?")
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise ValueError(
                f"Line {number} of the input is not UTF-8. Convert it, for example with iconv -f LATIN1 -t UTF-8."
            ) from None
        raw: Any = {next(iter(task.inputs)): text}
        if len(task.inputs) > 1:
            raw = parse_object(text, f"Line {number} of the input", task)
        example: dict[str, Any] = {}
        for role, field in task.inputs.items():
            if role not in raw and field.optional:
                example[role] = None
                continue
            if role not in raw:
                raise ValueError(f"Line {number} of the input has no {role!r}: it needs {', '.join(task.inputs)}.")
            example[role] = value_of(field, raw[role], Cell(place, number, role, Path()), blank=True)
        yield example


def parse_object(text: str, place: str, task: Task) -> dict[str, Any]:
    """One example of a task with several inputs, as JSON."""
    example = json.dumps(dict.fromkeys(task.inputs, "..."))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{place} is not a JSON object such as {example}.")
    return found
