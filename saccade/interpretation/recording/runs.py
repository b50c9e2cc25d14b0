"""Telling separate runs of a model apart."""

from __future__ import annotations

from types import FrameType

from saccade.interpretation.recording.naming import Names


class Runs:
    """Numbers the runs of a model: a run is one call of its outermost function, such as `forward` or `generate`.

    A mark among its local variables identifies a running frame. Its id is not enough, since a later frame may have the
    same id, and a reference to the frame would keep all its variables alive.

    Args:
        names: the modules of the model.
        start: the frame that started the recording, which is not part of any run.
    """

    def __init__(self, names: Names, start: FrameType) -> None:
        self._names = names
        self._start = start
        self._mark = f"saccade recording {id(self)}"
        self._frame_id = 0
        self._count = 0

    def number(self, frame: FrameType) -> int:
        """The number, from 0, of the run that this frame is part of."""
        each: FrameType | None = frame
        while each is not None and each is not self._start:
            if id(each) == self._frame_id and self._mark in each.f_locals:
                return self._count - 1
            each = each.f_back
        outermost = self._names.outermost(frame, self._start)
        if outermost is not None:
            outermost.f_locals[self._mark] = True
            self._frame_id = id(outermost)
        self._count += 1
        return self._count - 1
