"""Encoders for several sources, and where each encoded position comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from saccade.encoders.base import Encoder, EncoderOutput
from saccade.layers.limits import fewest


class Layout(NamedTuple):
    """Which position of which source each key of an encoded batch stands for.

    Args:
        owner: long (batch, keys), the number of the source, from 0; with n sources, n + s stands for all of source s.
        place: long (batch, keys), the position within that source.
        masks: for each source bool (batch, positions), True = real.
    """

    owner: Tensor
    place: Tensor
    masks: tuple[Tensor, ...]

    @classmethod
    def of(cls, masks: Sequence[Tensor]) -> Self:
        """The layout of concatenated sources."""
        owners = [torch.full(mask.shape, number, device=mask.device) for number, mask in enumerate(masks)]
        places = [torch.arange(mask.shape[1], device=mask.device).expand(mask.shape) for mask in masks]
        return cls(torch.cat(owners, dim=1), torch.cat(places, dim=1), tuple(masks))

    def row(self, number: int) -> Layout:
        """The layout of one example, as a batch of one."""
        one = slice(number, number + 1)
        return Layout(self.owner[one], self.place[one], tuple(mask[one] for mask in self.masks))

    def split(self, weights: Tensor) -> list[Tensor]:
        """The weights (batch, steps, keys) as (batch, steps, positions) of each source.

        Keys that stand for the same position add up; the weight of a key for a whole source is spread evenly over it.
        """
        found = []
        for number, mask in enumerate(self.masks):
            own = torch.where((self.owner == number).unsqueeze(1), weights, 0.0)
            place = torch.where(self.owner == number, self.place, 0).unsqueeze(1).expand_as(weights)
            part = weights.new_zeros(*weights.shape[:2], max(1, mask.shape[1])).scatter_add(-1, place, own)
            whole = torch.where((self.owner == len(self.masks) + number).unsqueeze(1), weights, 0.0)
            share = mask / mask.sum(1, keepdim=True).clamp(min=1)
            found.append(part[..., : mask.shape[1]] + whole.sum(-1, keepdim=True) * share.to(weights).unsqueeze(1))
        return found


class JoinedSources(NamedTuple):
    """Several encoded sources in one memory: like an `EncoderOutput`, with a layout."""

    states: Tensor
    mask: Tensor
    summary: Any
    layout: Layout


class EncodedSources(NamedTuple):
    """Several encoded sources, each with its own states."""

    sources: tuple[EncoderOutput, ...]

    @property
    def mask(self) -> Tensor:
        """bool (batch, positions of all sources, one after another)."""
        return torch.cat([source.mask for source in self.sources], dim=1)

    @property
    def summary(self) -> tuple[Any, ...]:
        """The summaries of all sources, from which a decoder starts."""
        return tuple(source.summary for source in self.sources)

    @property
    def layout(self) -> Layout:
        return Layout.of([source.mask for source in self.sources])

    def joined(self) -> JoinedSources:
        """One memory of all states, real positions first, as if there were one source."""
        layout = self.layout
        states = torch.cat([source.states for source in self.sources], dim=1)
        (states, owner, place), mask = pack([states, layout.owner, layout.place], self.mask)
        return JoinedSources(states, mask, self.summary, Layout(owner, place, layout.masks))


class SeveralEncoders(Encoder):
    """An encoder for each source.

    Shapes:
        source and mask of the first source, those of the second, and so on -> `EncodedSources`. A row whose mask is all
        False lacks that source: it has no positions, and the summary of a recurrent encoder is zero.
    """

    def __init__(self, *, encoders: Sequence[Encoder]) -> None:
        super().__init__()
        if not encoders:
            raise ValueError("encoders must name at least one encoder.")
        self.encoders = nn.ModuleList(encoders)
        self.output_dim, self.summary_dim = encoders[0].output_dim, encoders[0].summary_dim

    def each(self) -> list[Encoder]:
        """The encoders in the order of the sources."""
        return [encoder for encoder in self.encoders if isinstance(encoder, Encoder)]

    def forward(self, *sources: Tensor) -> EncodedSources:  # type: ignore[override] # any number of sources
        each = self.each()
        if len(sources) != 2 * len(each):
            raise ValueError(
                f"There are {len(each)} sources to read, each with its mask, got {len(sources)} tensors: the model was "
                "built for a different number of sources."
            )
        pairs = zip(each, sources[::2], sources[1::2], strict=True)
        return EncodedSources(tuple(encoder(source, mask) for encoder, source, mask in pairs))

    def positions(self, mask: Tensor) -> Tensor:
        return self.each()[0].positions(mask)

    def source_length(self, positions: int) -> int:
        found = fewest(encoder.source_length(positions) for encoder in self.each())
        assert found is not None
        return found


def pack(tensors: Sequence[Tensor], mask: Tensor) -> tuple[list[Tensor], Tensor]:
    """Moves the real positions of (batch, length, ...) to the front, in order; mask bool (batch, length)."""
    places = torch.arange(mask.shape[1], device=mask.device)
    order = torch.where(mask, places, places + mask.shape[1]).argsort(dim=1)  # no stable sort, which ONNX lacks
    rows = torch.arange(mask.shape[0], device=mask.device).unsqueeze(1)
    return [tensor[rows, order] for tensor in tensors], mask[rows, order]
