"""Checks that a picture can be written, before the work that it shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from saccade.registry import nearest

SUFFIXES = (".pdf", ".png", ".svg")


def check_picture(path: str) -> None:
    """Raises unless the file's suffix is a known format, its folder exists, and matplotlib is installed."""
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise ValueError(f"--plot {path}: no picture has the suffix {suffix!r}.{nearest(suffix, SUFFIXES)}")
    check_place(path, "--plot")
    check_matplotlib("--plot")


def check_place(path: str, option: str) -> None:
    """Raises unless a file can be written there."""
    if not path or "\0" in path:
        raise ValueError(f"{option}: {path!r} is not the name of a file.")
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{option} {path}: that is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {file.parent}.")


def check_matplotlib(option: str) -> None:
    """Raises unless matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError(f'{option} needs matplotlib: pip install "saccade[plots]"', name="matplotlib")
