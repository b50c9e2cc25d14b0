"""Selections: what distribution over positions follows from the scores?"""

from saccade.selections.base import Selection, selections
from saccade.selections.binary_concrete import BinaryConcrete
from saccade.selections.continuous_softmax import ContinuousSoftmax
from saccade.selections.continuous_sparsemax import ContinuousSparsemax
from saccade.selections.entmax import Entmax, entmax
from saccade.selections.entmax15 import Entmax15, entmax15
from saccade.selections.fusedmax import Fusedmax, fusedmax
from saccade.selections.gumbel_softmax import GumbelSoftmax
from saccade.selections.hard import Hard
from saccade.selections.k_subset import KSubset
from saccade.selections.linear_chain import LinearChain
from saccade.selections.local_m import LocalM
from saccade.selections.local_p import LocalP
from saccade.selections.mocha import MoChA
from saccade.selections.monotonic import Monotonic
from saccade.selections.non_projective_tree import NonProjectiveTree
from saccade.selections.normalized_sigmoid import NormalizedSigmoid
from saccade.selections.ntm_addressing import NTMAddressing
from saccade.selections.projective_tree import ProjectiveTree
from saccade.selections.relu_normalized import ReLUNormalized
from saccade.selections.segments import segment_entmax15, segment_softmax, segment_sparsemax
from saccade.selections.semi_markov import SemiMarkov
from saccade.selections.sigmoid import Sigmoid
from saccade.selections.softmax import Softmax, softmax
from saccade.selections.sparsemax import Sparsemax, sparsemax
from saccade.selections.step_chain import StepChain
from saccade.selections.top_k import TopK
from saccade.selections.windowed import Windowed

create = selections.create
names = selections.names

__all__ = [
    "BinaryConcrete",
    "ContinuousSoftmax",
    "ContinuousSparsemax",
    "Entmax",
    "Entmax15",
    "Fusedmax",
    "GumbelSoftmax",
    "Hard",
    "KSubset",
    "LinearChain",
    "LocalM",
    "LocalP",
    "MoChA",
    "Monotonic",
    "NTMAddressing",
    "NonProjectiveTree",
    "NormalizedSigmoid",
    "ProjectiveTree",
    "ReLUNormalized",
    "Selection",
    "SemiMarkov",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
    "StepChain",
    "TopK",
    "Windowed",
    "create",
    "entmax",
    "entmax15",
    "fusedmax",
    "names",
    "segment_entmax15",
    "segment_softmax",
    "segment_sparsemax",
    "selections",
    "softmax",
    "sparsemax",
]
