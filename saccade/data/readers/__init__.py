"""Readers: sources of many formats become rows, one at a time."""

from saccade.data.readers import delimited, folder, generated, hub, jsonl, memory, parallel, parquet
from saccade.data.readers.base import Reader, readers
from saccade.data.readers.memory import Rows
from saccade.data.readers.sources import absolute, open_readers

__all__ = [
    "Reader",
    "Rows",
    "absolute",
    "delimited",
    "folder",
    "generated",
    "hub",
    "jsonl",
    "memory",
    "open_readers",
    "parallel",
    "parquet",
    "readers",
]
