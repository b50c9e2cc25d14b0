"""The base class of distributions over positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor


class Distribution:
    """A distribution over z, written as an indicator over keys: (*batch, queries, keys).

    Picking one position gives a one-hot row, picking a subset gives several ones, picking nothing gives zeros, and a
    row with no attendable key always gives zeros. So for every distribution, the mean of samples is the marginals.

    Distributions are frozen dataclasses whose tensors have the queries on their second-to-last axis.
    """

    training: bool = False
    """Whether the selection was in training mode: then `draw` samples, otherwise it is the mode."""

    joint: bool = False
    """Whether one z spans all queries: then there is one log-probability and one entropy for all of them."""

    @property
    def marginals(self) -> Tensor:
        """P(z_j = 1), the attention weights: (*batch, queries, keys)."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable z."""
        raise NotImplementedError

    @property
    def support(self) -> Tensor:
        """bool: the positions that may be picked."""
        return self.marginals > 0

    def sample(self, n: int | None = None) -> Tensor:
        """One z, or `n` of them on a new first axis; gradients do not flow through it."""
        raise NotImplementedError

    def log_prob(self, z: Tensor) -> Tensor:
        """(*batch, queries): log P(z); -inf where z is impossible."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """(*batch, queries): in nats."""
        raise NotImplementedError

    @property
    def coefficients(self) -> Tensor:
        """The coefficients of the values in an expectation: the marginals, unless values are read through a basis."""
        return self.marginals

    @property
    def draw(self) -> Tensor:
        """The z of this reading: a sample in training, the mode otherwise; the same at every access."""
        kept = self.__dict__  # instances are frozen; functools.cached_property takes a lock, which cannot be compiled
        if "_draw" not in kept:
            kept["_draw"] = self.sample() if self.training else self.mode
        drawn: Tensor = kept["_draw"]
        return drawn

    @property
    def picked(self) -> Tensor | None:
        """The draw if one has been made, as hard attention does; None where the expectation was read instead."""
        return self.__dict__.get("_draw")

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Concatenates the distributions of consecutive queries."""
        first = parts[0]
        if len(parts) == 1:
            return first
        fields = {}
        for field in dataclasses.fields(first):  # type: ignore[arg-type]
            values = [getattr(part, field.name) for part in parts]
            fields[field.name] = torch.cat(values, dim=-2) if isinstance(values[0], Tensor) else values[0]
        joined = type(first)(**fields)
        if "_draw" in first.__dict__:
            joined.__dict__["_draw"] = torch.cat([part.draw for part in parts], dim=-2)
        return joined


def check_indicator(z: Tensor, keys: int) -> None:
    """Rejects a z that is not an indicator over the keys, such as an index."""
    if z.dim() < 1 or z.shape[-1] != keys:
        raise ValueError(
            f"z must be an indicator over the {keys} keys, got shape {tuple(z.shape)}: convert an index j with "
            f"torch.nn.functional.one_hot(j, {keys})."
        )


def one_hot(index: Tensor, size: int, like: Tensor) -> Tensor:
    """Indicator rows (*index, size) in the dtype of `like`."""
    return torch.zeros(*index.shape, size, dtype=like.dtype, device=like.device).scatter(-1, index.unsqueeze(-1), 1.0)


def plogp(p: Tensor) -> Tensor:
    """p log p with 0 log 0 = 0, in the value and in the gradient."""
    positive = p > 0
    return torch.where(positive, p * torch.where(positive, p, 1.0).log(), 0.0)
