"""Lexicons: word translations, learned from sentence pairs or read from files."""

from saccade.data.lexicons.lexicon import (
    Lexicon,
    LexiconTable,
    from_counts,
    kept,
    lexicon_table,
    read_lexicon,
    write_lexicon,
)
from saccade.data.lexicons.translation import Translations, hmm, ibm1

__all__ = [
    "Lexicon",
    "LexiconTable",
    "Translations",
    "from_counts",
    "hmm",
    "ibm1",
    "kept",
    "lexicon_table",
    "read_lexicon",
    "write_lexicon",
]
