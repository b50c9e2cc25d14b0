"""Distributions over positions, with marginals, mode, samples, log-probability and entropy."""

from saccade.distributions.alignment import AlignmentPosterior
from saccade.distributions.base import Distribution
from saccade.distributions.bernoulli import Bernoulli
from saccade.distributions.binary_sequence import BinarySequence
from saccade.distributions.categorical import Categorical
from saccade.distributions.chain import Chain, Segmentation
from saccade.distributions.chunked import Chunked
from saccade.distributions.continuous import Continuous
from saccade.distributions.densities import Density, Gaussian, TruncatedParabola
from saccade.distributions.drawn import Drawn
from saccade.distributions.segments import SegmentSet
from saccade.distributions.structured import Structured
from saccade.distributions.subset import Subset
from saccade.distributions.tree import Tree

__all__ = [
    "AlignmentPosterior",
    "Bernoulli",
    "BinarySequence",
    "Categorical",
    "Chain",
    "Chunked",
    "Continuous",
    "Density",
    "Distribution",
    "Drawn",
    "Gaussian",
    "SegmentSet",
    "Segmentation",
    "Structured",
    "Subset",
    "Tree",
    "TruncatedParabola",
]
