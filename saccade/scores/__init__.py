"""Scores: how well does this query match this key?"""

from saccade.scores.additive import AdditiveScore
from saccade.scores.base import DotProduct, Score, scores
from saccade.scores.dot import DotScore
from saccade.scores.scaled_dot import ScaledDotScore
from saccade.scores.sum import SumScore

create = scores.create
names = scores.names

__all__ = [
    "AdditiveScore",
    "DotProduct",
    "DotScore",
    "ScaledDotScore",
    "Score",
    "SumScore",
    "create",
    "names",
    "scores",
]
