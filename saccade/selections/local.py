"""Common base of the local attentions: a window around a position."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.checks import check_count, keep_declared
from saccade.distributions import Categorical, Distribution
from saccade.selections.base import Selection
from saccade.selections.softmax import softmax


class LocalSelection(Selection):
    """Softmax over the keys within `half_width` of a centre, which a subclass defines.

    Positions count attendable keys only, so padding is never counted. `select` works on the scores of all keys;
    `window` returns which keys are needed, so that an attention can score only those.
    """

    stateful = True
    grows = True
    defective = False
    """Whether weights may sum to less than one."""

    windowed = True
    """Whether `window` and `weigh` give the weights of `select`, so that an attention may score only the window.

    A subclass that overrides `select` or `forward` must declare this itself; it does not inherit it.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keep_declared(cls, "windowed", ("select", "forward"))

    def __init__(self, *, half_width: int) -> None:
        super().__init__()
        check_count("half_width", half_width, least=0)
        self.half_width = half_width

    def centre(self, query: Tensor, lengths: Tensor, state: int) -> Tensor:
        """(*batch, queries): the centre of each query's window, in `position_dtype`.

        Args:
            query: (*batch, queries, query_dim); only its shape matters where the centre is not predicted.
            lengths: (*batch, queries or 1) numbers of attendable keys.
            state: the number of queries read before.
        """
        raise NotImplementedError

    def weigh(self, scores: Tensor, within: Tensor, distance: Tensor) -> Tensor:
        """Weights of the scored keys, in their dtype, given which are `within` the window and their `distance`."""
        return softmax(scores, mask=within)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        reference = scores if query is None else query
        centre = self.centre(reference, mask.sum(-1), state or 0)
        distance = mask.cumsum(-1) - 1 - centre.unsqueeze(-1)
        within = mask & (distance.abs() <= self.half_width)
        probs = self.weigh(scores, within, distance)
        return Categorical(probs, defective=self.defective, training=self.training)

    def window(self, query: Tensor, lengths: Tensor, state: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Positions (*batch, queries, 2 * half_width + 1), whether each is in the window, distances to the centre."""
        centre = self.centre(query, lengths, state or 0).unsqueeze(-1)
        first = (centre.detach() - self.half_width).ceil()
        positions = first + torch.arange(2 * self.half_width + 1, device=query.device)
        distance = positions - centre
        within = (positions >= 0) & (positions < lengths.unsqueeze(-1)) & (distance.abs() <= self.half_width)
        return positions.clamp(min=0).long(), within, distance

    def advance(self, state: Any, distribution: Distribution) -> int:
        return self.after(state, distribution.marginals.shape[-2])

    def after(self, state: int | None, queries: int) -> int:
        """The state after reading `queries` more."""
        return (state or 0) + queries


def position_dtype(tensor: Tensor) -> torch.dtype:
    """At least single precision: bfloat16 cannot distinguish positions 256 and 257."""
    return torch.promote_types(tensor.dtype, torch.float32)
