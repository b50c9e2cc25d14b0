"""Selections: what distribution over positions follows from the scores?"""

from saccade.selections.base import Selection, selections
from saccade.selections.softmax import Softmax, softmax

create = selections.create
names = selections.names

__all__ = [
    "Selection",
    "Softmax",
    "create",
    "names",
    "selections",
    "softmax",
]
