"""Freed memory is kept for the next step rather than given back to the system."""

import ctypes
import os
import sys

LARGEST = 256 << 20
"""Bytes of the largest block that is taken from the heap: larger ones go back to the system when they are freed."""
RESERVE = 1 << 30
"""Bytes that the end of the heap may hold unused."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # glibc's malloc.h


def keep_freed_memory() -> bool:
    """Tells the C library not to return freed blocks at once; whether it was told.

    By default it maps every block of more than some megabytes anew, and the system fills it with zeros, page by page:
    a quarter of the time of a training step on a CPU. It holds for the whole process, so that only commands and
    trainings ask for it. Who sets `MALLOC_...` in the environment has decided already; libraries other than glibc have
    their own ways.
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
