"""Datasets of the Hugging Face `datasets` library: folders and names on the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from saccade.data.errors import BadRow, DataError
from saccade.data.extra import required
from saccade.data.readers.columns import Columns, as_columns, lookup, unknown
from saccade.registry import nearest

PREFIX = "hf:"


def read_dataset(
    name: str, columns: Columns | Sequence[str], *, bad: Callable[[BadRow], None]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of `hf:name`, `hf:name:split` or `hf:name@config:split`; the name is that of a folder or on the hub.

    A folder was written by `save_to_disk` or holds data files; a dataset on the hub is streamed.
    """
    columns = as_columns(columns, numbered=False)
    dataset = open_dataset(name)
    names = dataset.column_names
    for column in columns.values():
        if names is not None and column not in names and str(column).partition(".")[0] not in names:
            raise unknown(str(column), names, name)
    for line, record in enumerate(dataset, start=1):
        try:
            example = lookup(record, columns, name, line)
        except BadRow as row:
            bad(row)
        else:
            yield line, example


def open_dataset(name: str) -> Any:
    """The dataset of one split."""
    datasets = required("datasets")
    place, config, split = parts(name)
    if (Path(place) / "dataset_dict.json").exists() or (Path(place) / "state.json").exists():
        found = datasets.load_from_disk(place)
    else:
        try:
            found = datasets.load_dataset(place, config, streaming=True)
        except (OSError, ValueError, datasets.exceptions.DatasetNotFoundError) as error:
            raise DataError(f"The dataset {name!r} cannot be read: {error}. {_remedy(place)}") from error
    if not isinstance(found, dict):
        return found
    if split is None and len(found) == 1:
        return next(iter(found.values()))
    if split not in found:
        problem = "needs a split, as in" if split is None else f"has no split {split!r}, unlike"
        example = f"{PREFIX}{place}{'@' + config if config else ''}:{next(iter(found), 'train')}"
        raise DataError(f"{name!r} {problem} {example!r}.{nearest(split or '', found)}")
    return found[split]


def _remedy(place: str) -> str:
    if Path(place).exists():
        return "The folder must be one that `save_to_disk` wrote, or hold data files."
    return (
        f"There is no folder {place}, so it was looked for on the hub, which needs a network and the right name. "
        f"Elsewhere, `datasets.load_dataset({place!r}).save_to_disk('data')` makes a folder to bring along: "
        f"{PREFIX}data:train."
    )


def parts(name: str) -> tuple[str, str | None, str | None]:
    """The name, the configuration and the split."""
    place, split = name.removeprefix(PREFIX), None
    if not Path(place).exists() and ":" in place:
        place, _, split = place.rpartition(":")
    config = None
    if not Path(place).exists() and "@" in place:
        place, _, config = place.rpartition("@")
    return place, config, split
