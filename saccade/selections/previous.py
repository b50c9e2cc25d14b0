"""The previous step's weights, as the state of a selection."""

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.distributions import Categorical, Distribution


def working_dtype(scores: Tensor) -> torch.dtype:
    """At least single precision, so that values carried from step to step do not lose precision."""
    return torch.promote_types(scores.dtype, torch.float32)


def previous_weights(state: Tensor | None, scores: Tensor, mask: Tensor) -> Tensor:
    """(*batch, keys): the previous weights, or all weight on the first attendable key at the first step.

    If keys were appended to the memory since, they get no weight.
    """
    batch, keys = scores.shape[:-2], scores.shape[-1]
    if state is None:
        attendable = mask[..., 0, :]
        return (attendable & (attendable.cumsum(-1) == 1)).to(working_dtype(scores))
    if state.shape[:-1] != (*batch, 1) or state.shape[-1] > keys:
        raise ValueError(
            f"state of shape {tuple(state.shape)} does not fit scores {tuple(scores.shape)}: pass the state of the "
            f"previous reading of this memory, (*batch, 1, keys) with at most {keys} keys, or None at the first step."
        )
    return F.pad(state.squeeze(-2).to(working_dtype(scores)), (0, keys - state.shape[-1]))


def remembering(weights: Tensor, scores: Tensor, **settings: Any) -> Categorical:
    """The distribution with these weights in the scores' dtype, keeping their full precision for the next step."""
    rounded = weights.to(scores.dtype)
    return Categorical(rounded, exact=None if rounded is weights else weights, **settings)


def last_distribution(distribution: Distribution, state: Tensor | None) -> Tensor | None:
    """The state after the queries of a `remembering` distribution."""
    exact = cast(Categorical, distribution).exact
    return last_weights(distribution.marginals if exact is None else exact, state)


def last_weights(weights: Tensor, state: Tensor | None) -> Tensor | None:
    """(*batch, 1, keys): the state after `weights` (*batch, queries, keys); without queries, the old state."""
    return weights[..., -1:, :] if weights.shape[-2] else state
