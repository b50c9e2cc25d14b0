"""Common base of the tree selections."""

from typing import Any

from torch import Tensor

from saccade.distributions import Distribution
from saccade.distributions.tree import Tree
from saccade.selections.base import Selection


class TreeSelection(Selection):
    """Every query picks its head, so that together they form one tree."""

    joins_queries = True
    picks_tree = True
    projective: bool

    def __init__(self, *, single_root: bool = True) -> None:
        super().__init__()
        self.single_root = single_root

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Tree.of(
            scores, mask=mask, projective=self.projective, single_root=self.single_root, training=self.training
        )
