"""Dependency trees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.distributions.structured import Structured
from saccade.masks import fitted
from saccade.structures.backend import FORBIDDEN
from saccade.structures.non_projective_trees import NonProjectiveTrees
from saccade.structures.projective_trees import ProjectiveTrees


@dataclass(frozen=True, eq=False)
class Tree(Structured):
    """A dependency tree over n words, with z (*batch, n, n): row d is one at the head of d, or at d if d is a root.

    Created with `Tree.of`. Log-probabilities are (*batch,).
    """

    joint: bool = True

    @classmethod
    def of(
        cls,
        scores: Tensor,
        *,
        mask: Tensor | None = None,
        projective: bool = True,
        single_root: bool = True,
        training: bool = False,
    ) -> Tree:
        """The distribution over trees with these arc scores.

        Args:
            scores: (*batch, n, n), rows = dependents, columns = heads, with the scores of roots on the diagonal.
            mask: bool, broadcastable to the scores: the allowed arcs. A word that cannot be a head, or that has no
                possible head (not even itself), is absent.
            projective: whether arcs may not cross.
            single_root: whether exactly one word is a root, rather than one or more.
            training: whether `draw` samples.
        """
        if scores.dim() < 2 or scores.shape[-1] != scores.shape[-2]:
            raise ValueError(
                f"scores of a tree must be (*batch, n, n), got {tuple(scores.shape)}: a tree needs self-attention, "
                "with as many queries as keys."
            )
        present, arcs = None, scores
        if mask is not None:
            mask = fitted(mask, scores.shape, "the scores'")
            present = mask.any(-2) & mask.any(-1)
            arcs = torch.where(mask & present.unsqueeze(-1) & present.unsqueeze(-2), arcs, FORBIDDEN)
        structure = (ProjectiveTrees if projective else NonProjectiveTrees)(present, single_root)
        return cls(structure, (arcs,), dtype=scores.dtype, training=training)
