"""What records in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Any, Protocol

from torch import Tensor

from saccade.interpretation.recording.recipes import Captured, Change
from saccade.kernels.private_torch import is_paused, set_paused
from saccade.reading import Reading

NONE: Mapping[str, Any] = MappingProxyType({})


class Recording(Protocol):
    """What the replaced functions call. A frame is that of the function's caller."""

    changes: bool
    quick: Callable[..., bool] | None  # deals with usual calls of `F.scaled_dot_product_attention`

    def change_at(self, frame: FrameType) -> Change | None: ...
    def attended(
        self,
        attend: Callable[..., Captured],
        frame: FrameType,
        suffix: str = "",
        values: Tensor | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] = NONE,
    ) -> None: ...
    def softmax(self, args: Sequence[Any], result: Tensor, frame: FrameType | None) -> None: ...
    def edges(self, weights: Tensor, index: Tensor, num_nodes: int | None, dim: int, frame: FrameType) -> None: ...
    def read(self, reader: Callable[[], Reading]) -> Reading: ...


class Thread(threading.local):
    """The recordings of one thread."""

    def __init__(self) -> None:
        self.recordings: list[Recording] = []
        self.changing = False  # whether any of them changes weights
        self.changed: Tensor | None = None  # the weights that the last changed call used


@contextmanager
def muted() -> Iterator[None]:
    """Inside, nothing that this thread calls is recorded."""
    before = is_paused()
    set_paused(True)
    try:
        yield
    finally:
        set_paused(before)
