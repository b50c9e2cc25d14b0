"""What a cell with a recording can be: a path, the contents of a file, or samples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from saccade.data.cell import Cell, shown, text_of
from saccade.data.recordings import as_wav


def source_of(raw: Any, cell: Cell, rate: int) -> str | bytes:
    """The path of a recording, or the contents of its file; `rate` applies to samples without one."""
    if isinstance(raw, Mapping):
        if raw.get("array") is not None:
            return as_wav(raw["array"], raw.get("sampling_rate", rate))
        return source_of(raw["path"] if raw.get("bytes") is None else raw["bytes"], cell, rate)
    if isinstance(raw, bytes | bytearray | memoryview):
        return bytes(raw)
    if isinstance(raw, str | os.PathLike):
        return os.path.abspath(cell.folder / raw)
    return as_wav(raw.detach().cpu() if isinstance(raw, Tensor) else raw, rate)


def name_of(raw: Any, cell: Cell) -> str:
    """What the user calls a recording."""
    path = raw.get("path") if isinstance(raw, Mapping) else raw
    if isinstance(path, str | os.PathLike):
        return text_of(os.fspath(path), cell)
    if isinstance(raw, Mapping) and raw.get("array") is None and raw.get("bytes") is None:
        fix = "Give array and sampling_rate, bytes, or path."
        raise cell.bad(f"the {cell.role} is a dictionary without a recording (keys: {sorted(map(str, raw))})", fix)
    if isinstance(raw, Mapping | bytes | bytearray | memoryview) or hasattr(raw, "__array__"):
        return f"recording {cell.line}"
    if raw is None:
        raise cell.bad(f"the {cell.role} is empty", "Give the path of a recording.")
    raise cell.bad(f"the {cell.role} is not a recording but {shown(raw)}", "Give the path of a WAV, FLAC or OGG file.")
