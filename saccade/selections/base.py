"""What a selection is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.aggregations import Aggregation
from saccade.distributions import Distribution
from saccade.kernels.modes import visible
from saccade.masks import fitted
from saccade.registry import Registry


class Selection(nn.Module):
    """What distribution over positions follows from the scores.

    A new selection writes `select`, which applies the mask: masked keys get weight zero, and a row without any
    attendable key gets zero weights and finite gradients. One that remembers earlier steps is `stateful`: it takes
    all queries at once, in order, with the state before the first, and `advance` gives the state after the last.
    """

    stateful: bool = False
    """Whether a step's distribution depends on the steps before it."""

    stochastic: bool = False
    """Whether training draws at random, so that training and evaluation differ by design."""

    joins_queries: bool = False
    """Whether all queries pick together, one structure for all of them."""

    grows: bool = False
    """Whether a stateful selection keeps its state valid when keys are appended, as in self-attention to the past."""

    plain_softmax: bool = False
    """Whether it is `softmax(scores)` and nothing else, so that fused kernels may compute it.

    A subclass that overrides `select` or `forward` must declare this itself; it does not inherit it.
    """

    online: bool = False
    """Whether evaluation looks at no key after the last one that it reads."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "plain_softmax" not in own and ("select" in own or "forward" in own):
            cls.plain_softmax = False

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Any:
        """The query-independent half, where a selection looks at the keys itself (see `Score.prepare`)."""
        return ()

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        """The distribution; scores (*batch, queries, keys), finite where `mask` (same shape) is True."""
        raise NotImplementedError

    def advance(self, state: Any, distribution: Distribution) -> Any:
        """The state after the queries of `distribution`."""
        return state

    def default_aggregation(self) -> Aggregation | None:
        """The aggregation that `Attention` takes if none is given; None for the expectation."""
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
    """The mask in the shape of the scores; no mask allows everything."""
    if mask is None:
        return torch.ones((), dtype=torch.bool, device=scores.device).expand(scores.shape)
    return fitted(mask, scores.shape, "the scores'")


def check_finite(scores: Tensor, mask: Tensor) -> None:
    """Refuses scores that are not finite where they may be attended.

    Only on the CPU and outside compiled code: elsewhere the look would stop the device or break the graph.
    """
    if not visible(scores):
        return
    # The sum is finite if all scores are: one cheap look for the usual case.
    if bool(torch.isfinite(scores.detach().sum())):
        return
    wrong = ~torch.isfinite(scores.detach()) & mask
    if bool(wrong.any()):
        place = tuple(int(i) for i in wrong.nonzero()[0])
        raise ValueError(
            f"scores must be finite where the mask allows attention, got {scores[place].item()} at index {place}. "
            "Positions that may not be attended belong in the mask, not in the scores; NaN comes from layers before."
        )
