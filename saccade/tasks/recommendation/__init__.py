"""Recommendation: what would a user think of an item?"""

from saccade.tasks.recommendation.task import Recommendation

__all__ = ["Recommendation"]
