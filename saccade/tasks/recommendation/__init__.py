"""Recommendation: how would a user rate an item?"""

from saccade.tasks.recommendation.task import Recommendation

__all__ = ["Recommendation"]
