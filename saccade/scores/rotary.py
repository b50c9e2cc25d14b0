"""Rotary positions."""

from typing import Any

import torch
from torch import Tensor

from saccade.scores.base import DotProduct, Prepared, scores
from saccade.scores.dot import DotScore
from saccade.scores.positional import PositionalScore
from saccade.scores.scaled_dot import ScaledDotScore


def rotate(vectors: Tensor, positions: Tensor, dim: int, base: float) -> Tensor:
    """Rotates pairs (0, 1), (2, 3), ... of the first `dim` features by angles that grow with the position.

    Args:
        vectors: (*batch, length, features).
        positions: (length, 1) or (*batch, length, 1).
        dim: how many features to rotate; an even number.
        base: pair p is rotated by position * base^(-2p / dim).
    """
    # In half precision, angles at distant positions would be off by whole turns.
    exact = torch.promote_types(vectors.dtype, torch.float32)
    pairs = torch.arange(0, dim, 2, device=vectors.device, dtype=exact)
    angles = positions.to(exact) * base ** (-pairs / dim)
    cos, sin = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
    even, odd = vectors[..., 0:dim:2], vectors[..., 1:dim:2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
    return turned if dim == vectors.shape[-1] else torch.cat([turned, vectors[..., dim:]], dim=-1)


@scores.register("rotary")
class RotaryScore(PositionalScore):
    r"""Rotates query and key by their positions before an inner product, which then depends only on their distance.

    .. math:: s_{ij} = \mathrm{score}(R_i q_i, R_j k_j), \qquad (R_i q_i)^\top (R_j k_j) = q_i^\top R_{j - i}\, k_j

    R_m rotates the pair of features (2p, 2p + 1) by the angle m base^{-2p / d}, p = 0, 1, ..., with d = `dim`. Features
    beyond `dim` are not rotated.

    Shapes:
        query (*batch, queries, features), keys (*batch, keys, features) -> scores (*batch, queries, keys).

    Reference:
        Su et al. (2021), arXiv:2104.09864, section 3.2.

    Args:
        score: an inner product: `DotScore`, `ScaledDotScore` (default), `CosineScore`.
        dim: how many features to rotate (default: all).
        base: the larger the base, the more slowly the last pairs rotate.
    """

    def __init__(self, *, score: DotScore | None = None, dim: int | None = None, base: float = 10000.0) -> None:
        super().__init__()
        score = ScaledDotScore() if score is None else score
        if not isinstance(score, DotScore):
            raise TypeError(
                f"score must be DotScore, ScaledDotScore or CosineScore, got {type(score).__name__}: only an inner "
                "product turns rotations into distances."
            )
        if dim is not None and (dim < 2 or dim % 2):
            raise ValueError(f"dim must be an even number, 2 or more, got {dim}: features are rotated in pairs.")
        if base <= 0:
            raise ValueError(f"base must be above 0, got {base}.")
        self.score = score
        self.dim = dim
        self.base = base

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        positions = torch.arange(start, start + keys.shape[-2], device=keys.device).unsqueeze(-1)
        return self.score.prepare(self._rotate(keys, positions, "keys"), mask=mask, start=start)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        return self._dot(query, prepared, state).scores()

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        return self._dot(query, prepared, None)

    def _dot(self, query: Tensor, prepared: Prepared, state: Any) -> DotProduct:
        turned = self._rotate(query, self.query_positions(query, prepared, state), "query")
        return self.score.as_dot_product(turned, prepared)

    def _rotate(self, vectors: Tensor, positions: Tensor, argument: str) -> Tensor:
        features = vectors.shape[-1]
        dim = features if self.dim is None else self.dim
        if dim > features or dim % 2:
            raise ValueError(
                f"{argument} of shape {tuple(vectors.shape)} has {features} features, but RotaryScore rotates {dim} "
                "of them in pairs: build it with an even dim that is no larger."
            )
        return rotate(vectors, positions, dim, self.base)
