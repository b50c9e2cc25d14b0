"""Tokenisers: text to ids and back, learned from the training data and saved with the model."""

from saccade.data.tokenisers.base import Tokeniser, tokenisers
from saccade.data.tokenisers.byte_level import ByteBpeTokeniser
from saccade.data.tokenisers.listed import CharTokeniser, PretokenisedTokeniser, WordTokeniser
from saccade.data.tokenisers.subwords import BpeTokeniser, UnigramTokeniser
from saccade.data.tokenisers.tagged import TaggedTokeniser

__all__ = [
    "BpeTokeniser",
    "ByteBpeTokeniser",
    "CharTokeniser",
    "PretokenisedTokeniser",
    "TaggedTokeniser",
    "Tokeniser",
    "UnigramTokeniser",
    "WordTokeniser",
    "tokenisers",
]
