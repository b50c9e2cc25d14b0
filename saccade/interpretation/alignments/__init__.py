"""Alignments: which source word each target word came from, read off attention."""

from saccade.interpretation.alignments.extraction import align, pharaoh
from saccade.interpretation.alignments.words import Sink, Words, merge_words

__all__ = ["Sink", "Words", "align", "merge_words", "pharaoh"]
