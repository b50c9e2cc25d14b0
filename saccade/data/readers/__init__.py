"""Readers: files of many formats become examples, one at a time."""

from saccade.data.readers.examples import Examples, read_examples

__all__ = ["Examples", "read_examples"]
