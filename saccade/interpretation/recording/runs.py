"""Distinguishing separate runs of a model."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType

from saccade.interpretation.recording.naming import Names


class _Token:
    """Lives as long as the frame among whose variables it is."""


def _none() -> None:
    """Before the first run."""


class Runs:
    """Numbers the runs of a model: a run is one call of its outermost function, such as `forward` or `generate`.

    A token among the local variables of its frame shows whether it is still running. A reference to the frame would
    keep all its variables alive, and its id is not enough, since a later frame may have the same.

    Args:
        names: the modules of the model.
        start: the frame that started the recording, which is not part of any run.

    Attributes:
        token: gives something as long as the last run lasts.
        count: the number of runs.
    """

    def __init__(self, names: Names, start: FrameType) -> None:
        self._names = names
        self._start = start
        self.token: Callable[[], _Token | None] = _none
        self.count = 0

    def number(self, frame: FrameType) -> int:
        """The number, from 0, of the run that this frame is part of."""
        if self.token() is not None:
            return self.count - 1
        outermost = self._names.outermost(frame, self._start)
        if outermost is not None:
            token = _Token()
            outermost.f_locals[f"saccade recording {id(self)}"] = token
            self.token = weakref.ref(token)
        self.count += 1
        return self.count - 1
