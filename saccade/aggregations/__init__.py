"""Aggregations: what is read from the values?"""

from saccade.aggregations.base import Aggregation, aggregations
from saccade.aggregations.expectation import Expectation
from saccade.aggregations.feature_wise import FeatureWise
from saccade.aggregations.sample import Sample

create = aggregations.create
names = aggregations.names

__all__ = [
    "Aggregation",
    "Expectation",
    "FeatureWise",
    "Sample",
    "aggregations",
    "create",
    "names",
]
