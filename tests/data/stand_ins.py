"""Fields for the tests of readers."""

from saccade.data.cell import text_of
from saccade.data.corpus import Corpus, Examples


class Raw:
    def read(self, raw, cell):
        return raw


class Text:
    def __init__(self, may_be_empty=False):
        self.may_be_empty = may_be_empty

    def read(self, raw, cell):
        return text_of(raw, cell, may_be_empty=self.may_be_empty)


class Place:
    """Gives the cell itself."""

    def read(self, raw, cell):
        return raw, cell


def read(source, roles="source target", *, field=Text, optional=(), **settings) -> Examples:
    return Corpus(**settings).read(source, {role: field() for role in roles.split()}, optional=optional)
