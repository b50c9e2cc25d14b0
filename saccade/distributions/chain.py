"""Sequences of states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from saccade.distributions.base import check_indicator
from saccade.distributions.structured import Structured
from saccade.masks import fitted
from saccade.structures.backend import Potentials, possible
from saccade.structures.chains import Chains


@dataclass(frozen=True, eq=False)
class Chain(Structured):
    """A sequence of states, with z (*batch, positions, states) one-hot at each position.

    A general linear-chain conditional random field, created with `Chain.of`. Log-probabilities are (*batch,).
    """

    joint: bool = True

    @classmethod
    def of(cls, unary: Tensor, transitions: Tensor, *, mask: Tensor | None = None, training: bool = False) -> Chain:
        """The chain with these potentials.

        Args:
            unary: (*batch, positions, states).
            transitions: (states, states) for all positions, or broadcastable to (*batch, positions - 1, states,
                states); from the earlier state to the later one.
            mask: bool, broadcastable to (*batch, positions), True = valid.
            training: whether `draw` samples.
        """
        if unary.dim() < 2 or transitions.dim() < 2 or transitions.shape[-2:] != (unary.shape[-1],) * 2:
            raise ValueError(
                f"unary must be (*batch, positions, states) and transitions (..., states, states), got "
                f"{tuple(unary.shape)} and {tuple(transitions.shape)}."
            )
        if transitions.dim() == 2:
            transitions = transitions.unsqueeze(0)
        batch, between = unary.shape[:-2], max(unary.shape[-2] - 1, 0)
        try:
            transitions = transitions.expand(*batch, *transitions.shape[-3:])
            if transitions.shape[-3] not in (1, between):
                raise RuntimeError
        except RuntimeError:
            raise ValueError(
                f"transitions of shape {tuple(transitions.shape)} are not (states, states) and do not broadcast to "
                f"(*batch, positions - 1, states, states) = {(*batch, between, *transitions.shape[-2:])}. For one "
                "table per example, pass transitions.unsqueeze(-3)."
            ) from None
        if mask is not None:
            mask = fitted(mask, unary.shape[:-1], "the positions'")
            unary = torch.where(mask.unsqueeze(-1), unary, 0.0)  # masked entries may be anything
        return cls(Chains(mask), (unary, transitions), dtype=unary.dtype, training=training)

    @property
    def edges(self) -> Tensor:
        """(*batch, positions - 1, states, states): P(z_i = a, z_{i+1} = b), zero where a position is missing."""
        unary, transitions = self.potentials
        between = max(unary.shape[-2] - 1, 0)
        full = transitions.expand(*unary.shape[:-2], between, *transitions.shape[-2:])
        return self.structure.inference((unary, full))[1][1].to(self.dtype)

    def parts(self, z: Tensor) -> Potentials:
        assert isinstance(self.structure, Chains)
        unary = self.potentials[0]
        states = z.argmax(-1) if z.shape[-1] else z.sum(-1).long()
        return self.structure.parts(states, unary.shape[-1])

    def log_prob(self, z: Tensor) -> Tensor:
        assert isinstance(self.structure, Chains)
        mask = self.structure.mask
        one_each = z.sum(-1) == (1 if mask is None else mask.to(z.dtype))
        return torch.where(one_each.all(-1) | ~possible(self._log_partition), super().log_prob(z), -torch.inf)


@dataclass(frozen=True, eq=False)
class Segmentation(Structured):
    """Any subset of the keys, with coupled neighbours: a two-state chain for each query.

    Created with `Segmentation.of`; z is one at the keys in state 1.
    """

    @classmethod
    def of(
        cls,
        scores: Tensor,
        transitions: Tensor,
        mask: Tensor,
        *,
        start_and_stop: bool = False,
        training: bool = False,
    ) -> Segmentation:
        """The segmentation with scores (*batch, queries, keys) of state 1, and transitions (2, 2).

        With `start_and_stop` there are also transitions into the first key and out of the last, each the mean of those
        into or out of the same state.
        """
        mask = fitted(mask, scores.shape, "the scores'")
        picked = torch.where(mask, scores, 0.0).to(torch.float64)
        unary = torch.stack([torch.zeros_like(picked), picked], dim=-1)
        edge = transitions.to(torch.float64)
        if start_and_stop:
            first = mask & (mask.cumsum(-1) == 1)
            last = mask & (mask.flip(-1).cumsum(-1).flip(-1) == 1)
            unary = unary + first.unsqueeze(-1) * edge.mean(0) + last.unsqueeze(-1) * edge.mean(1)
        shared = edge.expand(*scores.shape[:-1], 1, 2, 2)
        return cls(Chains(mask), (unary, shared), dtype=scores.dtype, training=training)

    @property
    def edges(self) -> Tensor:
        """(*batch, queries, keys - 1, 2, 2): P(z_i = a, z_{i+1} = b), zero where a key is masked.

        The edge between two keys with masked keys between them is stored at the later one.
        """
        unary, transitions = self.potentials
        between = max(unary.shape[-2] - 1, 0)
        full = transitions.expand(*unary.shape[:-2], between, 2, 2)
        return self.structure.inference((unary, full))[1][1].to(self.dtype)

    def indicator(self, parts: Potentials) -> Tensor:
        return parts[0][..., 1].to(self.dtype)

    def parts(self, z: Tensor) -> Potentials:
        assert isinstance(self.structure, Chains)
        return self.structure.parts((z == 1).long(), 2)

    def log_prob(self, z: Tensor) -> Tensor:
        assert isinstance(self.structure, Chains)
        assert self.structure.mask is not None
        check_indicator(z, self.structure.mask.shape[-1])
        log_prob = super().log_prob(z)
        outside = ((z != 0) & ~self.structure.mask).any(-1)
        return torch.where(outside, -torch.inf, log_prob)

    def joined(self, parts: Sequence[Self]) -> Self:
        masks = [part.structure.mask for part in parts if isinstance(part.structure, Chains)]
        unary = torch.cat([part.potentials[0] for part in parts], dim=-3)
        transitions = torch.cat([part.potentials[1] for part in parts], dim=-4)
        mask = torch.cat([mask for mask in masks if mask is not None], dim=-2)
        return type(self)(Chains(mask), (unary, transitions), dtype=self.dtype, training=self.training)
