"""Common base of continuous softmax and sparsemax: a density over [0, 1], and values read through a basis."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.distributions import Continuous, Density, Distribution, Gaussian
from saccade.kernels.modes import exporting
from saccade.selections.base import Selection
from saccade.selections.conditioned import query_of
from saccade.selections.previous import working_dtype
from saccade.selections.ranks import Ranks
from saccade.selections.softmax import softmax


class ContinuousSelection(Selection):
    """A density with location mu and squared scale sigma2, defined by a subclass.

    Everything beyond mu and sigma2 is computed in double precision.

    Args:
        query_dim: if given, mu and sigma2 are computed from the query by a linear layer, and only the shape of the
            scores is used; otherwise they are the mean and variance of the scores' softmax over positions.
        num_basis: the number of basis functions.
        widths: standard deviations of the Gaussian basis functions, the same number of each.
        ridge: the penalty of the regression that fits the values.
    """

    through_basis = True
    density: type[Density]
    smallest_variance = 1e-6

    def __init__(
        self,
        *,
        query_dim: int | None = None,
        num_basis: int = 64,
        widths: Sequence[float] = (0.1, 0.5),
        ridge: float = 0.01,
    ) -> None:
        super().__init__()
        if not widths or not all(width > 0 for width in widths):
            raise ValueError(f"widths must be one or more numbers above 0, got {widths}.")
        if num_basis < 1 or num_basis % len(widths):
            raise ValueError(
                f"num_basis must be a positive multiple of the number of widths, {len(widths)}, got {num_basis}."
            )
        if not ridge > 0:
            raise ValueError(f"ridge must be above 0, got {ridge}.")
        self.query_dim = query_dim
        self.num_basis = num_basis
        self.widths = tuple(widths)
        self.ridge = ridge
        self.density_proj = None if query_dim is None else nn.Linear(query_dim, 2)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        ranks = Ranks.of(_without_repeats(mask))
        size = ranks.size.clamp(min=1).double()
        mu, sigma2 = self._location_and_scale(scores, mask, (ranks.rank + 0.5) / size, query)
        density = self.density(mu.double(), sigma2.double())
        mass = density.cumulative((ranks.rank + 1) / size) - density.cumulative(ranks.rank / size)
        expected = density.expected_bump(*self._basis(scores.device))
        regression = self._regression(ranks, size)
        # Usually one regression serves all queries: do not copy it for each of them.
        if regression.shape[-3] == 1:
            readout = expected @ regression.squeeze(-3)
        else:
            readout = (expected.unsqueeze(-2) @ regression).squeeze(-2)
        return Continuous(
            mass.clamp(min=0.0).masked_fill(~mask, 0.0).to(scores.dtype),
            defective=True,
            training=self.training,
            mu=mu,
            sigma2=sigma2,
            kind=self.density,
            readout=readout.expand(scores.shape).to(scores.dtype),
        )

    def _location_and_scale(
        self, scores: Tensor, mask: Tensor, points: Tensor, query: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """mu and sigma2, each (*batch, queries, 1)."""
        dtype = working_dtype(scores)
        if self.density_proj is not None and self.query_dim is not None:
            query = query_of(query, scores, self.query_dim, self)
            location, scale = self.density_proj(query).to(dtype).chunk(2, dim=-1)
            shape = (*scores.shape[:-1], 1)
            mu, sigma2 = torch.sigmoid(location).expand(shape), F.softplus(scale).expand(shape)
        else:
            weights = softmax(scores.to(dtype), mask=mask)
            points = points.to(dtype)
            mu = (weights * points).sum(-1, keepdim=True)
            sigma2 = (weights * (points - mu) ** 2).sum(-1, keepdim=True)
        return mu, sigma2.clamp(min=self.smallest_variance)

    def _basis(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Centres and widths of the basis functions, (num_basis,)."""
        each = self.num_basis // len(self.widths)
        centres = torch.linspace(0, 1, each, dtype=torch.float64, device=device)
        widths = torch.tensor(self.widths, dtype=torch.float64, device=device)
        return centres.repeat(len(self.widths)), widths.repeat_interleave(each)

    @torch.no_grad()
    def _regression(self, ranks: Ranks, size: Tensor) -> Tensor:
        """G^T (..., num_basis, keys): the ridge regression's map from values to coefficients of the basis."""
        centres, widths = self._basis(size.device)
        points = ((ranks.rank + 0.5) / size).unsqueeze(-2)
        basis = Gaussian(centres.unsqueeze(-1), widths.unsqueeze(-1) ** 2).density(points)
        basis = basis.masked_fill(~ranks.mask.unsqueeze(-2), 0.0)
        gram = basis @ basis.mT + self.ridge * torch.eye(self.num_basis, dtype=basis.dtype, device=basis.device)
        return torch.cholesky_solve(basis, torch.linalg.cholesky(gram))


def _without_repeats(mask: Tensor) -> Tensor:
    """The mask with size 1 along expanded axes, so that everything derived from it is computed once.

    Not in exported programs, which would assume the strides of the example for every input.
    """
    if exporting():
        return mask
    for axis in range(mask.dim() - 1):
        if mask.stride(axis) == 0 and mask.shape[axis] > 1:
            mask = mask.narrow(axis, 0, 1)
    return mask
