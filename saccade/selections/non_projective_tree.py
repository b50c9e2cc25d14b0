"""Non-projective-tree selection."""

from saccade.selections.base import selections
from saccade.selections.tree import TreeSelection


@selections.register("non_projective_tree")
class NonProjectiveTree(TreeSelection):
    r"""Picks a head for every word, so that they form a dependency tree; arcs may cross.

    .. math:: p(z) \propto \exp \sum_{d, h} s_{dh} z_{dh}, \qquad z \text{ a tree}, \qquad
        Z = \det(\operatorname{diag}(r) + \operatorname{diag}(A \mathbf{1}) - A)

    A_{dh} = \exp s_{dh} and r_d = \exp s_{dd}; with a single root, only the part of Z that is linear in r. Queries and
    keys are the words of a sentence: row d of the weights holds the probabilities of the heads of d, and its diagonal
    entry the probability that d is a root. A masked key is treated as absent, both as head and as dependent.

    Shapes:
        scores (*batch, n, n), mask of the same shape -> a `Tree` over all queries.

    Reference:
        Koo et al. (2007), "Structured Prediction Models via the Matrix-Tree Theorem"; Kim et al. (2017),
        arXiv:1702.00887.

    Args:
        single_root: whether exactly one word is a root, rather than one or more.
    """

    projective = False
