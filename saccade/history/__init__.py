"""History: features of each key that attention carries from step to step."""

from saccade.history.base import HistoryFeature, features
from saccade.history.convolved_weights import ConvolvedWeights
from saccade.history.coverage import Coverage
from saccade.history.coverage_embedding import CoverageEmbedding
from saccade.history.linguistic_coverage import LinguisticCoverage
from saccade.history.local_fertility import LocalFertility
from saccade.history.markov import Markov
from saccade.history.neural_coverage import NeuralCoverage
from saccade.history.positions import PositionFeature

create = features.create
names = features.names

__all__ = [
    "ConvolvedWeights",
    "Coverage",
    "CoverageEmbedding",
    "HistoryFeature",
    "LinguisticCoverage",
    "LocalFertility",
    "Markov",
    "NeuralCoverage",
    "PositionFeature",
    "create",
    "features",
    "names",
]
