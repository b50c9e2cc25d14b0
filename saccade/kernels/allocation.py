"""Keeps freed memory for the next step instead of returning it to the system."""

import ctypes
import os
import sys

LARGEST = 256 << 20
"""Largest block in bytes to allocate from the heap: larger ones are returned to the system when freed."""
RESERVE = 1 << 30
"""Unused bytes allowed at the end of the heap."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # glibc's malloc.h


def keep_freed_memory() -> bool:
    """Tells the C library not to return freed blocks immediately; returns whether it did.

    By default every block of more than some megabytes is newly mapped, and the system zeroes it page by page, which
    takes a quarter of a training step on a CPU. The setting applies to the whole process, so only commands and training
    use it. It is skipped if `MALLOC_...` is set in the environment, and for C libraries other than glibc.
    """
    decided = any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get(
        "GLIBC_TUNABLES", ""
    )
    if decided or not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, RESERVE))
