"""Saccade: every attention mechanism as a score, a selection and an aggregation."""

from saccade import aggregations, masks, scores, selections
from saccade.attention import Attention, Memory, Reading, State
from saccade.multihead import MultiHead

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Memory",
    "MultiHead",
    "Reading",
    "State",
    "aggregations",
    "masks",
    "scores",
    "selections",
]
