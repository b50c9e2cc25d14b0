"""Interpretation: what a model attends to."""

from saccade.interpretation.alignments import align, merge_words, pharaoh
from saccade.interpretation.text import draw_attention

__all__ = ["align", "draw_attention", "merge_words", "pharaoh"]
