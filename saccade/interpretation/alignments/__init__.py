"""Alignments: which source word each target word came from, extracted from attention."""

from saccade.interpretation.alignments.extraction import Link, align, align_above, align_mutual, pharaoh
from saccade.interpretation.alignments.formats import (
    FORMATS,
    Alignment,
    Format,
    format_alignment,
    read_alignments,
    read_pharaoh,
)
from saccade.interpretation.alignments.propagation import flow, rollout
from saccade.interpretation.alignments.symmetrisation import METHODS, Method, symmetrise
from saccade.interpretation.alignments.words import Sink, Words, merge_words

__all__ = [
    "FORMATS",
    "METHODS",
    "Alignment",
    "Format",
    "Link",
    "Method",
    "Sink",
    "Words",
    "align",
    "align_above",
    "align_mutual",
    "flow",
    "format_alignment",
    "merge_words",
    "pharaoh",
    "read_alignments",
    "read_pharaoh",
    "rollout",
    "symmetrise",
]
