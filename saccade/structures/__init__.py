"""Structures: sets of sequences, trees and subsets, each defined by its log-partition."""

from saccade.structures.alignments import Alignments, MonotonicAlignments, SteppedAlignments
from saccade.structures.backend import FORBIDDEN, Backend, Potentials
from saccade.structures.base import Structure
from saccade.structures.chains import Chains
from saccade.structures.non_projective_trees import NonProjectiveTrees
from saccade.structures.projective_trees import ProjectiveTrees
from saccade.structures.segments import Segments
from saccade.structures.semiring import Plus, log_plus, max_plus, sample_plus
from saccade.structures.subsets import Subsets

__all__ = [
    "FORBIDDEN",
    "Alignments",
    "Backend",
    "Chains",
    "MonotonicAlignments",
    "NonProjectiveTrees",
    "Plus",
    "Potentials",
    "ProjectiveTrees",
    "Segments",
    "SteppedAlignments",
    "Structure",
    "Subsets",
    "log_plus",
    "max_plus",
    "sample_plus",
]
