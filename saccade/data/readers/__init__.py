"""Readers: rows from sources of many formats, one at a time."""

from saccade.data.readers.base import Reader, readers
from saccade.data.readers.delimited import Csv, Tsv
from saccade.data.readers.folder import FolderOfFiles
from saccade.data.readers.generated import Dates
from saccade.data.readers.hub import Hub
from saccade.data.readers.jsonl import JsonLines
from saccade.data.readers.memory import InMemory, Rows
from saccade.data.readers.parallel import ParallelText
from saccade.data.readers.parquet import Parquet
from saccade.data.readers.parts import FilePart
from saccade.data.readers.reviews import Amazon, Yelp
from saccade.data.readers.sources import absolute, open_readers
from saccade.data.readers.tu import TU

__all__ = [
    "TU",
    "Amazon",
    "Csv",
    "Dates",
    "FilePart",
    "FolderOfFiles",
    "Hub",
    "InMemory",
    "JsonLines",
    "ParallelText",
    "Parquet",
    "Reader",
    "Rows",
    "Tsv",
    "Yelp",
    "absolute",
    "open_readers",
    "readers",
]
