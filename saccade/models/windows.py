"""Long texts as windows, each read by a Transformer on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels.modes import exporting


class Windows(NamedTuple):
    """The windows of a batch of texts; windows that are all padding are left out.

    Every window begins with its text's first token, such as `[CLS]`, so that each looks like a separate text.
    """

    tokens: Tensor
    """(windows, size)."""

    mask: Tensor
    """bool (windows, size)."""

    segments: Tensor | None
    """(windows, size)."""

    kept: Tensor | None
    """bool (batch * windows of the longest text), False for those left out; None if none are."""

    @classmethod
    def of(cls, tokens: Tensor, mask: Tensor, segments: Tensor | None, size: int) -> Windows:
        """Splits texts (batch, length) into windows of `size` tokens, the repeated first one included."""
        windows = cls(
            _split(tokens, size), _split(mask, size), None if segments is None else _split(segments, size), None
        )
        if exporting():  # whose shapes must not depend on values
            return windows
        first = torch.arange(len(windows.mask), device=mask.device) % _count(tokens, size) == 0
        kept = windows.mask[:, 1:].any(1) | first
        of_kept = None if windows.segments is None else windows.segments[kept]
        return cls(windows.tokens[kept], windows.mask[kept], of_kept, kept)

    def joined(self, states: Tensor, batch: int, length: int) -> Tensor:
        """The states (batch, length, dim) of the texts, from those of the windows (windows, size, dim)."""
        if self.kept is not None:
            states = states.new_zeros(len(self.kept), *states.shape[1:]).masked_scatter(
                self.kept.view(-1, 1, 1), states
            )
        states = states.unflatten(0, (batch, -1))
        rest = states[:, :, 1:].flatten(1, 2)[:, : length - 1]
        return torch.cat([states[:, 0, :1], rest], dim=1)


def unpadded_states(
    read: Callable[[list[list[int]], list[int] | None], list[Tensor]],
    texts: Sequence[Sequence[int]],
    first: Sequence[int] | None,
    size: int,
) -> Iterator[Tensor]:
    """(1, length, dim) for each text, whose windows are read without padding.

    Args:
        read: gives the states (length, dim) of each of some windows; see `Unpadded.states`.
        texts: the ids of each, with the special ones.
        first: how many tokens of each belong to the first of two texts.
        size: tokens of a window, the repeated first one included.
    """
    step = size - 1
    starts = [range(1, max(len(text), 2), step) for text in texts]
    windows = [[*text[:1], *text[s : s + step]] for text, own in zip(texts, starts, strict=True) for s in own]
    parts = None if first is None else [max(1, n - s + 1) for n, own in zip(first, starts, strict=True) for s in own]
    found = iter(read(windows, parts))
    for own in starts:
        states = list(islice(found, len(own)))
        yield torch.cat([states[0], *(each[1:] for each in states[1:])]).unsqueeze(0)


def _count(tokens: Tensor, size: int) -> int:
    """The windows of the longest text."""
    return max(1, -(-(tokens.shape[1] - 1) // (size - 1)))


def _split(values: Tensor, size: int) -> Tensor:
    """(batch, length) -> (batch * windows, size)."""
    count = _count(values, size)
    rest = F.pad(values[:, 1:], (0, count * (size - 1) - (values.shape[1] - 1)))
    first = values[:, :1].unsqueeze(1).expand(-1, count, -1)
    return torch.cat([first, rest.unflatten(1, (count, size - 1))], dim=2).flatten(0, 1)
