"""Whether a picture can be written, asked before the work that it shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from saccade.registry import nearest

SUFFIXES = (".pdf", ".png", ".svg")


def check_picture(path: str) -> None:
    """Raises unless the file's suffix is a format, its folder is there, and matplotlib is installed."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--plot {path}: no picture has the suffix {file.suffix!r}.{nearest(file.suffix, SUFFIXES)}")
    if file.is_dir():
        raise ValueError(f"--plot {path}: that is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise ValueError(f"--plot {path}: there is no folder {file.parent}.")
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError('--plot needs matplotlib: pip install "saccade[plots]"', name="matplotlib")
