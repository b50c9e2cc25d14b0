"""The base class of selections."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.aggregations import Aggregation
from saccade.checks import keep_declared
from saccade.distributions import Distribution
from saccade.kernels.finite import NotFiniteError, surely_finite
from saccade.kernels.modes import visible
from saccade.masks import fitted
from saccade.registry import Registry


class Selection(nn.Module):
    """Turns scores into a distribution over positions.

    A new selection implements `select`, which applies the mask: masked keys get weight zero, and a row with no
    attendable key gets zero weights and finite gradients. A selection that depends on earlier steps is `stateful`: it
    takes all queries at once, in order, with the state before the first; `advance` returns the state after the last.
    """

    stateful: bool = False
    """Whether the distribution of a step depends on earlier steps."""

    stochastic: bool = False
    """Whether training samples at random, so that training and evaluation differ by design."""

    reinforced: bool = False
    """Whether these samples carry no gradient, so that models train them by a reward (`saccade.losses`)."""

    joins_queries: bool = False
    """Whether one structure is picked for all queries together."""

    picks_tree: bool = False
    """Whether this structure is a tree: each query picks its parent."""

    grows: bool = False
    """Whether a stateful selection keeps its state valid when keys are appended, as in self-attention to the past."""

    plain_softmax: bool = False
    """Whether it is `softmax(scores)` and nothing else, so that fused kernels may compute it.

    A subclass that overrides `select` or `forward` must declare this itself; it does not inherit it.
    """

    segment_mapping: str | None = None
    """Its name in `saccade.kernels.segments`, if it is one of those mappings and nothing else; not inherited either."""

    through_basis: bool = False
    """Whether values are read through a basis, so that there are no weights to change."""

    online: bool = False
    """Whether evaluation never looks at keys beyond the last one it reads."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keep_declared(cls, "plain_softmax", ("select", "forward"))
        keep_declared(cls, "segment_mapping", ("select", "forward"), otherwise=None)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Any:
        """Computes the query-independent half, for selections that use the keys themselves (see `Score.prepare`)."""
        return ()

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        """Returns the distribution; scores (*batch, queries, keys) are finite where `mask` (same shape) is True."""
        raise NotImplementedError

    def advance(self, state: Any, distribution: Distribution) -> Any:
        """The state after the queries of `distribution`."""
        return state

    def default_aggregation(self) -> Aggregation | None:
        """The aggregation that `Attention` uses if none is given; None for the expectation."""
        return None

    def forward(
        self,
        scores: Tensor,
        mask: Tensor | None = None,
        *,
        query: Tensor | None = None,
        prepared: Any = (),
        state: Any = None,
    ) -> Distribution:
        mask = full_mask(scores, mask)
        check_finite(scores, mask)
        return self.select(scores, mask, query=query, prepared=prepared, state=state)


selections: Registry[Selection] = Registry("selection", base=Selection, home="saccade.selections")


def full_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The mask expanded to the shape of the scores; None allows everything."""
    if mask is None:
        return torch.ones((), dtype=torch.bool, device=scores.device).expand(scores.shape)
    return fitted(mask, scores.shape, "the scores'")


def check_finite(scores: Tensor, mask: Tensor) -> None:
    """Rejects scores that are not finite at attendable positions.

    Only on the CPU and outside compiled code: elsewhere the check would synchronise the device or break the graph.
    """
    if not visible(scores):
        return
    if surely_finite(scores):
        return
    wrong = ~torch.isfinite(scores.detach()) & mask
    if bool(wrong.any()):
        place = tuple(int(i) for i in wrong.nonzero()[0])
        raise NotFiniteError(
            f"scores must be finite where the mask allows attention, got {scores[place].item()} at index {place}. "
            "Exclude positions with the mask, not with infinite scores; NaN comes from earlier layers."
        )
