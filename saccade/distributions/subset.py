"""Subsets of a given size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.distributions.structured import Structured
from saccade.masks import fitted
from saccade.structures.backend import FORBIDDEN
from saccade.structures.subsets import Subsets


@dataclass(frozen=True, eq=False)
class Subset(Structured):
    """Exactly k of the keys, or all of them if there are fewer; created with `Subset.of`."""

    @classmethod
    def of(cls, scores: Tensor, k: int, mask: Tensor, *, training: bool = False) -> Subset:
        """Subsets of k of the keys that `mask` (*batch, queries, keys) allows, with scores of the same shape."""
        check_count("k", k, least=0)
        mask = fitted(mask, scores.shape, "the scores'")
        theta = torch.where(mask, scores, FORBIDDEN).to(torch.float64)
        largest = min(k, scores.shape[-1])
        structure = Subsets(mask.sum(-1).clamp(max=k), largest)
        return cls(structure, (theta,), dtype=scores.dtype, training=training)

    def _choices(self) -> dict[str, object]:
        return {"sizes": vars(self.structure)["sizes"]}

    def joined(self, parts: Sequence[Self]) -> Self:
        structures = [part.structure for part in parts if isinstance(part.structure, Subsets)]
        sizes = torch.cat([structure.sizes for structure in structures], dim=-1)
        theta = torch.cat([part.potentials[0] for part in parts], dim=-2)
        return replace(self, structure=Subsets(sizes, structures[0].largest), potentials=(theta,))
