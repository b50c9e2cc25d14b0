"""Scores: how well does this query match this key?"""

from saccade.scores.activated_general import ActivatedGeneralScore
from saccade.scores.additive import AdditiveScore
from saccade.scores.alibi import ALiBi
from saccade.scores.base import DotProduct, HiddenLayer, Score, scores
from saccade.scores.biaffine import BiaffineScore
from saccade.scores.biased_general import BiasedGeneralScore
from saccade.scores.bilinear import BilinearScore
from saccade.scores.cohn import CohnScore
from saccade.scores.concat import ConcatScore
from saccade.scores.convolutional import ConvolutionalScore
from saccade.scores.cosine import CosineScore
from saccade.scores.coverage import CoverageScore
from saccade.scores.coverage_embedding import CoverageEmbeddingScore
from saccade.scores.dot import DotScore
from saccade.scores.feature_wise import FeatureWiseScore
from saccade.scores.gat import GATScore, GATv2Score
from saccade.scores.history import HistoryScore
from saccade.scores.kernel import KernelScore
from saccade.scores.learned_relative_bias import LearnedRelativeBias
from saccade.scores.linguistic_coverage import LinguisticCoverageScore
from saccade.scores.location import LocationScore
from saccade.scores.location_aware import LocationAwareScore
from saccade.scores.low_rank_bilinear import LowRankBilinearScore
from saccade.scores.mlp import MLPScore
from saccade.scores.mlp_dot import MLPDotScore
from saccade.scores.monotonic_energy import MonotonicEnergyScore
from saccade.scores.negative_distance import NegativeDistanceScore
from saccade.scores.neural_coverage import NeuralCoverageScore
from saccade.scores.neural_tensor import NeuralTensorScore
from saccade.scores.ntm_content import NTMContentScore
from saccade.scores.position_bias import PositionBias
from saccade.scores.positional import PositionalScore
from saccade.scores.query_free import QueryFreeScore
from saccade.scores.rbf_kernel import RBFKernelScore
from saccade.scores.rotary import RotaryScore
from saccade.scores.scaled_dot import ScaledDotScore
from saccade.scores.sum import SumScore
from saccade.scores.t5_relative_bias import T5RelativeBias

create = scores.create
names = scores.names

__all__ = [
    "ALiBi",
    "ActivatedGeneralScore",
    "AdditiveScore",
    "BiaffineScore",
    "BiasedGeneralScore",
    "BilinearScore",
    "CohnScore",
    "ConcatScore",
    "ConvolutionalScore",
    "CosineScore",
    "CoverageEmbeddingScore",
    "CoverageScore",
    "DotProduct",
    "DotScore",
    "FeatureWiseScore",
    "GATScore",
    "GATv2Score",
    "HiddenLayer",
    "HistoryScore",
    "KernelScore",
    "LearnedRelativeBias",
    "LinguisticCoverageScore",
    "LocationAwareScore",
    "LocationScore",
    "LowRankBilinearScore",
    "MLPDotScore",
    "MLPScore",
    "MonotonicEnergyScore",
    "NTMContentScore",
    "NegativeDistanceScore",
    "NeuralCoverageScore",
    "NeuralTensorScore",
    "PositionBias",
    "PositionalScore",
    "QueryFreeScore",
    "RBFKernelScore",
    "RotaryScore",
    "ScaledDotScore",
    "Score",
    "SumScore",
    "T5RelativeBias",
    "create",
    "names",
    "scores",
]
