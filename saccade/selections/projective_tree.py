"""Projective-tree selection."""

from saccade.selections.base import selections
from saccade.selections.tree import TreeSelection


@selections.register("projective_tree")
class ProjectiveTree(TreeSelection):
    r"""Picks a head for every word, so that they form a dependency tree without crossing arcs.

    .. math:: p(z) \propto \exp \sum_{d, h} s_{dh} z_{dh}, \qquad z \text{ a projective tree}

    Queries and keys are the words of a sentence: row d of the weights holds the probabilities of the heads of d, and
    its diagonal entry the probability that d is a root. A masked key is treated as absent, both as head and as
    dependent. The expectation reads the soft parent of each word, the `soft_children` aggregation its children.

    Shapes:
        scores (*batch, n, n), mask of the same shape -> a `Tree` over all queries.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, section 3.2; Eisner (1996). Their \theta_{ij} is s_{ji}.

    Args:
        single_root: whether exactly one word is a root, rather than one or more.
    """

    projective = True
