"""Distributions over structures."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.distributions.base import Distribution, check_indicator
from saccade.kernels.modes import visible
from saccade.structures.backend import FORBIDDEN, Potentials, possible, wide
from saccade.structures.base import Structure


@dataclass(frozen=True, eq=False)
class Structured(Distribution):
    """A structure with probability proportional to the exponential of the sum of its parts' potentials.

    Marginals and samples are those of the parts of the first potentials. If one structure spans all queries (a tree),
    `log_partition`, `log_prob`, `entropy` and `kl` have no queries axis. If no structure is possible, z is zero.

    Args:
        structure: the set of structures.
        potentials: float32 or float64, `FORBIDDEN` (or -inf) for parts that may not be used.
        dtype: the dtype of the results.
        training: whether `draw` samples.
        joint: whether one structure spans all queries.
    """

    structure: Structure
    potentials: Potentials
    dtype: torch.dtype = torch.float64
    training: bool = False
    joint: bool = False

    def __post_init__(self) -> None:
        if not self.dtype.is_floating_point:
            raise TypeError(f"potentials must be floating-point numbers, got {self.dtype}: use .float().")
        common = functools.reduce(torch.promote_types, (t.dtype for t in self.potentials), torch.float32)
        object.__setattr__(self, "potentials", tuple(_bounded(t.to(common)) for t in self.potentials))

    @property
    def inference(self) -> tuple[Tensor, Potentials]:
        """Log-partition and marginals of all parts, computed once; results under no_grad are cached separately."""
        return self._inferred("inference", self.potentials)

    @property
    def _exact_inference(self) -> tuple[Tensor, Potentials]:
        """With marginals in float64, since products of rounded marginals with potentials would lose precision."""
        exact = self.potentials[0].dtype == torch.float64
        return self.inference if exact else self._inferred("exact_inference", wide(self.potentials))

    def _inferred(self, name: str, potentials: Potentials) -> tuple[Tensor, Potentials]:
        kept = self.__dict__
        name = f"_{name}_kept" if torch.is_grad_enabled() else f"_{name}_kept_without_gradient"
        if name not in kept:
            kept[name] = self.structure.inference(potentials)
        result: tuple[Tensor, Potentials] = kept[name]
        return result

    @property
    def log_partition(self) -> Tensor:
        """log Z: (*batch, queries), or (*batch,) for a joint structure; -inf where no structure is possible."""
        total = self._log_partition
        return torch.where(possible(total), total, -torch.inf).to(self.dtype)

    @property
    def _log_partition(self) -> Tensor:
        """Without the marginals, where these would be more work."""
        return (
            self.inference[0]
            if self.structure.backend().native
            else self.structure.log_partition(wide(self.potentials))
        )

    @property
    def marginals(self) -> Tensor:
        return self.indicator(self.inference[1])

    @property
    def mode(self) -> Tensor:
        return self.indicator(self.structure.best(wide(self.potentials)))

    def sample(self, n: int | None = None) -> Tensor:
        count = 1 if n is None else n
        check_count("n", count, least=0)
        with torch.no_grad():
            z = self.indicator(self.structure.sample(wide(self.potentials), count))
        return z if n is not None else z.squeeze(0)

    def indicator(self, parts: Potentials) -> Tensor:
        """z, or its expectation, as (*batch, queries, keys)."""
        return parts[0].to(self.dtype)

    def parts(self, z: Tensor) -> Potentials:
        """The parts of z (..., queries, keys)."""
        return (z.to(torch.float64),)

    def log_prob(self, z: Tensor) -> Tensor:
        wanted = tuple(self.potentials[0].shape[-2:])
        if not self.joint and type(self).parts is Structured.parts:
            check_indicator(z, self.potentials[0].shape[-1])
        if self.joint and tuple(z.shape[-2:]) != wanted:
            raise ValueError(
                f"z must be an indicator (..., {wanted[0]}, {wanted[1]}), got shape {tuple(z.shape)}: convert indices "
                f"with torch.nn.functional.one_hot(indices, {wanted[1]}), and use rows of zeros for masked entries."
            )
        total = self._log_partition
        well_formed = ((z == 0) | (z == 1)).flatten(z.dim() - (2 if self.joint else 1)).all(-1)
        parts = self.parts(torch.where(z == 1, z, 0.0))
        weight = self.structure.weight(wide(self.potentials), parts)
        is_structure = self.structure.contains(parts) & (weight > FORBIDDEN / 10)
        nothing = ~possible(total) & (z == 0).flatten(z.dim() - (2 if self.joint else 1)).all(-1)
        log_prob = torch.where(possible(total), weight - total, 0.0)
        valid = torch.where(possible(total), is_structure, nothing) & well_formed
        return torch.where(valid, log_prob, -torch.inf).to(self.dtype)

    def entropy(self) -> Tensor:
        total, marginals = self._exact_inference
        expected = self.structure.weight(wide(self.potentials), marginals)
        return torch.where(possible(total), total - expected, 0.0).clamp(min=0.0).to(self.dtype)

    def kl(self, other: Self) -> Tensor:
        """KL(self || other) in nats, for distributions over the same structures; inf where other is zero."""
        our_potentials, their_potentials = self._beside(other)
        same = all(a.shape == b.shape for a, b in zip(self.potentials, our_potentials, strict=True))
        ours, marginals = self._exact_inference if same else self.structure.inference(our_potentials)
        theirs, _ = other.inference
        weight = self.structure.weight
        forbidden = tuple((theta <= FORBIDDEN / 10).to(theta.dtype) for theta in their_potentials)
        both = zip(our_potentials, their_potentials, forbidden, strict=True)
        differences = tuple(torch.where(never > 0, 0.0, mine - theta) for mine, theta, never in both)
        divergence = weight(differences, marginals) - ours + theirs
        impossible = (weight(forbidden, marginals) > self.structure.marginal_error) | ~possible(theirs)
        divergence = torch.where(impossible, torch.inf, divergence.clamp(min=0.0))
        return torch.where(possible(ours), divergence, 0.0).to(self.dtype)

    def _beside(self, other: Self) -> tuple[Potentials, Potentials]:
        """The potentials of both in float64 and in common shapes, checked to be over the same structures."""
        if not isinstance(other, Structured) or type(self.structure) is not type(other.structure):
            kinds = [type(getattr(each, "structure", each)).__name__ for each in (self, other)]
            raise ValueError(f"kl compares distributions over the same structures, got {kinds[0]} and {kinds[1]}.")
        event = self.structure.event_dims
        shapes = [[tuple(theta.shape) for theta in each.potentials] for each in (self, other)]
        try:
            ours, theirs = ((each[0][-event:], [shape[-1] for shape in each]) for each in shapes)
            if ours != theirs:
                raise RuntimeError
            both = zip(wide(self.potentials), wide(other.potentials), strict=True)
            pairs = [torch.broadcast_tensors(*pair) for pair in both]
        except RuntimeError:
            one, another = (", ".join(map(str, each)) for each in shapes)
            raise ValueError(
                f"kl compares distributions over the same structures, but their potentials are {one} and {another}."
            ) from None
        for name, chosen in self._choices().items():
            if not _same(chosen, other._choices().get(name)):
                raise ValueError(f"kl compares distributions over the same structures, but their `{name}` differs.")
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)

    def _choices(self) -> dict[str, object]:
        """Everything that determines the set of structures."""
        return vars(self.structure)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        if len(parts) == 1:
            return first
        if first.joint:
            raise ValueError(
                "a structure that spans all queries cannot be read one query at a time: use it with a stateless score."
            )
        joined = first.joined(parts)
        if "_draw" in first.__dict__:
            joined.__dict__["_draw"] = torch.cat([part.draw for part in parts], dim=-2)
        return joined

    def joined(self, parts: Sequence[Self]) -> Self:
        """Concatenates the distributions of consecutive queries."""
        potentials = tuple(torch.cat(tensors, dim=-2) for tensors in zip(*(p.potentials for p in parts), strict=True))
        return replace(self, potentials=potentials)


def _same(ours: object, theirs: object) -> bool:
    """Whether these are equal, as far as can be checked; None equals a mask that is all True."""
    tensors = [each for each in (ours, theirs) if isinstance(each, Tensor)]
    if not all(visible(tensor) for tensor in tensors):
        return True
    if len(tensors) == 2:
        return bool((tensors[0] == tensors[1]).all())
    if len(tensors) == 1:
        return tensors[0].dtype == torch.bool and bool(tensors[0].all())
    plain = isinstance(ours, bool | int | float | str | None) and isinstance(theirs, bool | int | float | str | None)
    return ours == theirs if plain else True


def _bounded(potentials: Tensor) -> Tensor:
    """Raises potentials below `FORBIDDEN` to it; if there are none, this costs only a check."""
    if visible(potentials) and potentials.numel():
        low, high = (float(bound) for bound in torch.aminmax(potentials.detach()))
        if math.isnan(low) or high == math.inf:
            wrong = potentials.detach().isnan() | (potentials.detach() == math.inf)
            place = tuple(int(i) for i in wrong.nonzero()[0])
            raise ValueError(
                f"scores of parts must be finite, or -inf for forbidden parts, got "
                f"{potentials[place].item()} at index {place}; NaN comes from earlier layers."
            )
        if low >= FORBIDDEN * (1 + 1e-6):  # FORBIDDEN is rounded in float32
            return potentials
    return potentials.clamp(min=FORBIDDEN)
