"""Datasets of the Hugging Face `datasets` library: folders and names on the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from saccade.data.errors import BadRow, DataError, one_line
from saccade.data.extra import required
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.columns import Record
from saccade.data.readers.files import stamp
from saccade.registry import nearest

PREFIX = "hf:"


@readers.register("hub")
class Hub(Reader):
    """Rows of `hf:name`, `hf:name:split` or `hf:name@config:split`; the name is a folder or a dataset on the hub.

    A folder was written by `save_to_disk` or contains data files; a dataset on the hub is streamed.
    """

    prefix = PREFIX

    @classmethod
    def absolute(cls, source: str) -> str:
        place = parts(source)[0]
        if not Path(place).exists():  # on the hub
            return source
        return PREFIX + os.path.abspath(place) + source.removeprefix(PREFIX + place)

    def rows(self) -> Iterator[tuple[int, Record | BadRow]]:
        dataset = open_dataset(self.name)
        place = Path(parts(self.name)[0])
        self.names, self.folder = dataset.column_names, place if place.is_dir() else Path()
        rows, line = iter(dataset), 0
        while True:
            try:
                row = next(rows, None)
            except damage() as error:
                raise DataError(f"Cannot read {self.name!r} after row {line}: {one_line(error)[:300]}.") from None
            if row is None:
                return
            line += 1
            yield line, row

    def stamp(self) -> str:
        return f"{self.name}\n{stamp(parts(self.name)[0])}"


def open_dataset(name: str) -> Any:
    """The dataset of one split."""
    datasets = required("datasets")
    place, config, split = parts(name)
    if not place.strip("/"):
        raise DataError(f"{name!r} names no dataset: write hf:folder:split, or hf:name:split for one on the hub.")
    try:
        if is_saved(place):
            found = datasets.load_from_disk(place)
        else:
            found = datasets.load_dataset(place, config, streaming=True)
    except damage() as error:
        raise DataError(f"Cannot read the dataset {name!r}: {one_line(error)[:300]}. {_remedy(place)}") from error
    if not isinstance(found, dict):
        return _undecoded(found)
    if split is None and len(found) == 1:
        return _undecoded(next(iter(found.values())))
    if split not in found:
        problem = "needs a split, as in" if split is None else f"has no split {split!r}, unlike"
        example = f"{PREFIX}{place}{'@' + config if config else ''}:{next(iter(found), 'train')}"
        raise DataError(f"{name!r} {problem} {example!r}.{nearest(split or '', found)}")
    return _undecoded(found[split])


def _undecoded(dataset: Any) -> Any:
    """The dataset with recordings and pictures as bytes and paths: fields decode them, and only when needed."""
    library = required("datasets")
    for name, kind in (dataset.features or {}).items():
        if isinstance(kind, library.Audio | library.Image) and kind.decode:
            dataset = dataset.cast_column(name, type(kind)(decode=False))
    return dataset


def damage() -> tuple[type[Exception], ...]:
    """The errors of datasets that cannot be found or read, or that the library refuses because they contain code."""
    found = required("datasets").exceptions.DatasetsError, required("pyarrow").ArrowException
    return (OSError, ValueError, RuntimeError, UnpicklingError, *found)


def is_saved(place: str | Path) -> bool:
    """Whether `save_to_disk` of the `datasets` library wrote the folder."""
    return any((Path(place) / name).exists() for name in ("dataset_dict.json", "state.json"))


def _remedy(place: str) -> str:
    if Path(place).exists():
        return "The folder must be one that `save_to_disk` wrote, or contain data files."
    return (
        f"There is no folder {place}, so it was looked up on the hub, which requires a network and the right name. "
        f"On a machine with a network, `datasets.load_dataset({place!r}).save_to_disk('data')` makes a folder to copy: "
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
