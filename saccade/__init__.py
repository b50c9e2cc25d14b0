"""Saccade: every attention mechanism as a score, a selection and an aggregation."""

from saccade import aggregations, losses, masks, scores, selections
from saccade.attention import Attention
from saccade.memory import Memory
from saccade.multihead import MultiHead
from saccade.reading import Reading, State

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Memory",
    "MultiHead",
    "Reading",
    "State",
    "aggregations",
    "losses",
    "masks",
    "scores",
    "selections",
]
