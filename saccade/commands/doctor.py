"""The command that shows what works on this machine: doctor."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator

HIDDEN = {"all", "bench", "dev", "docs", "peers"}
"""Extras that only Saccade's developers need, or that include the others."""


def doctor() -> None:
    """Show versions, kernels, devices and extras, to include in a bug report.

    saccade doctor
    """
    for line in findings():
        print(line)


def findings() -> Iterator[str]:
    """Describes this machine, line by line."""
    from importlib import metadata

    import torch

    import saccade
    from saccade.kernels import cache, native

    yield f"Saccade {saccade.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    gpus += ["Apple MPS"] if torch.backends.mps.is_available() else []
    yield f"PyTorch {metadata.version('torch')}, {torch.get_num_threads()} threads, GPU: {', '.join(gpus) or 'none'}"
    yield f"Cores: {os.cpu_count()}, memory: {_memory()}"
    yield f"Kernels: {native.status()}"
    yield f"Kernel cache: {cache.private_cache() or 'none: kernels are compiled for each process'}"
    for extra, missing in sorted(missing_packages().items()):
        fix = f"missing {', '.join(missing)}: pip install 'saccade[{extra}]'" if missing else "installed"
        yield f"Extra {extra}: {fix}"


def missing_packages() -> dict[str, list[str]]:
    """The packages of each extra that are not installed."""
    from importlib import metadata

    found: dict[str, list[str]] = {}
    for requirement in metadata.requires("saccade") or []:
        extra = re.search(r"extra\s*==\s*['\"](\w+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra is None or name is None or extra[1] in HIDDEN:
            continue
        missing = found.setdefault(extra[1], [])
        try:
            metadata.version(name[0])
        except metadata.PackageNotFoundError:
            missing.append(name[0])
    return found


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GB"
