"""Aggregations: what is read from the values?"""

from saccade.aggregations.attention_over_attention import AttentionOverAttention
from saccade.aggregations.base import Aggregation, aggregations
from saccade.aggregations.concat_picks import ConcatPicks
from saccade.aggregations.copy import Copy, copy_distribution
from saccade.aggregations.expectation import Expectation
from saccade.aggregations.feature_wise import FeatureWise
from saccade.aggregations.gated import Gated
from saccade.aggregations.log_sum_exp import LogSumExp
from saccade.aggregations.max_pool import MaxPool
from saccade.aggregations.pairwise import Pairwise
from saccade.aggregations.renormalized_mean import RenormalizedMean
from saccade.aggregations.sample import Sample
from saccade.aggregations.soft_children import SoftChildren
from saccade.aggregations.top_k_mean import TopKMean
from saccade.aggregations.unnormalized_sum import UnnormalizedSum

create = aggregations.create
names = aggregations.names

__all__ = [
    "Aggregation",
    "AttentionOverAttention",
    "ConcatPicks",
    "Copy",
    "Expectation",
    "FeatureWise",
    "Gated",
    "LogSumExp",
    "MaxPool",
    "Pairwise",
    "RenormalizedMean",
    "Sample",
    "SoftChildren",
    "TopKMean",
    "UnnormalizedSum",
    "aggregations",
    "copy_distribution",
    "create",
    "names",
]
