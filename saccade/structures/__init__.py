"""Structures: sets of sequences, trees and subsets, each by its log-partition."""

from saccade.structures.base import FORBIDDEN, Potentials, Structure
from saccade.structures.chains import Chains
from saccade.structures.non_projective_trees import NonProjectiveTrees
from saccade.structures.projective_trees import ProjectiveTrees
from saccade.structures.semiring import Plus, log_plus, max_plus, sample_plus

__all__ = [
    "FORBIDDEN",
    "Chains",
    "NonProjectiveTrees",
    "Plus",
    "Potentials",
    "ProjectiveTrees",
    "Structure",
    "log_plus",
    "max_plus",
    "sample_plus",
]
