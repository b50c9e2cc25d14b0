"""Reading examples with the columns that the figures of a task need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from saccade.data.cell import FieldLike
from saccade.data.corpus import Corpus
from saccade.data.errors import DataError
from saccade.data.examples import Examples
from saccade.tasks import Task


def read_examples(
    data: Corpus,
    source: Any,
    task: Task,
    fields: Mapping[str, FieldLike],
    *,
    optional: Collection[str] = (),
    scored: bool = True,
) -> Examples:
    """The examples of a source; a column that is missing only for a figure is an error that names the figure.

    Args:
        data: how files are read.
        source: files, or examples in memory.
        task: whose examples they are.
        fields: what is read in any case.
        optional: those roles that may be missing from the source.
        scored: whether the task's figures are computed from these examples.
    """
    usual: dict[str, Any] = {"optional": optional, "extras": task.extras, "check": task.check_example}
    needed = {role: task.scored[role] for role in task.figure_columns if role not in fields} if scored else {}
    try:
        return data.read(source, {**fields, **needed}, **usual)
    except DataError as error:
        if not needed:
            raise
        problem = error
    data.read(source, fields, **usual)  # raises if something else is wrong, too
    wants = [f"{task.figure_columns[role]} needs a column {role!r}" for role in needed]
    figures = " and ".join(dict.fromkeys(task.figure_columns[role] for role in needed))
    raise DataError(
        f"{' and '.join(wants)}: add it to the data, or leave {figures} out of the metrics. {problem}"
    ) from None
