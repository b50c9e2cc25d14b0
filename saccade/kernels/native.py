"""C kernels, compiled on first use and called through ctypes.

Nothing has to be built or installed: the first call that can use them runs the system's C compiler for a second or two
and keeps the result in the user's cache folder. Without a compiler, with `SACCADE_NATIVE=0` in the environment, or for
tensors that are not float32 or float64 on the CPU, callers take their plain PyTorch path.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.kernels.modes import ordinary, plain_only, recording

SOURCE = Path(__file__).parent / "source"
FLAGS = (("-O3", "-march=native"), ("-O3",))  # some compilers do not know the processor they run on
SUFFIX = {torch.float32: "_float", torch.float64: "_double"}
SMALL = 200_000
"""Operations below which handing work to another thread costs more than it gains."""


def usable(*tensors: Tensor) -> bool:
    """Whether the kernels can take these tensors, there are any, and nobody records what happens to tensors."""
    return (
        not recording()
        and not plain_only()
        and all(t.is_cpu and t.dtype in SUFFIX and ordinary(t) for t in tensors)
        and library() is not None
    )


def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None where there are none."""
    return None if os.environ.get("SACCADE_NATIVE") == "0" else _load()


def function(name: str, dtype: torch.dtype) -> Callable[..., Any]:
    """A kernel by its name without the type's suffix; only where `usable`."""
    kernels = library()
    assert kernels is not None
    found: Callable[..., Any] = getattr(kernels, name + SUFFIX[dtype])
    return found


def count(name: str, dtype: torch.dtype, *sizes: int) -> int:
    """What a C function says that takes and gives back a long; only where `usable`."""
    answer = function(name, dtype)
    answer.restype = ctypes.c_long  # type: ignore[attr-defined]
    return int(answer(*map(ctypes.c_long, sizes)))


def run(kernel: Callable[..., Any], *arguments: Any, items: int, operations: float) -> list[Any]:
    """Calls `kernel(*arguments, first, last)` over all items, on as many threads as PyTorch uses.

    Tensors must be contiguous; None is a null pointer. Returns the results of the parts.
    """
    converted = [
        ctypes.c_void_p(a.data_ptr())
        if isinstance(a, Tensor)
        else ctypes.c_double(a)
        if isinstance(a, float)
        else ctypes.c_long(a)
        if isinstance(a, int)
        else a
        for a in arguments
    ]
    parts = min(torch.get_num_threads(), items) if operations > SMALL else 1
    if parts <= 1:
        return [kernel(*converted, ctypes.c_long(0), ctypes.c_long(items))]
    bounds = [ctypes.c_long(items * part // parts) for part in range(parts + 1)]
    pool = _pool(os.getpid(), parts - 1)
    others = [pool.submit(_part, kernel, converted, arguments, bounds[i], bounds[i + 1]) for i in range(1, parts)]
    return [kernel(*converted, bounds[0], bounds[1]), *(other.result() for other in others)]


def _part(kernel: Callable[..., Any], converted: Sequence[Any], alive: Any, first: Any, last: Any) -> Any:
    """Holds on to the tensors: an interrupt can end the caller while this thread still writes into them."""
    return kernel(*converted, first, last)


@functools.cache
def _pool(pid: int, workers: int) -> ThreadPoolExecutor:
    """Threads do not survive a fork, so each process has its own."""
    return ThreadPoolExecutor(workers, thread_name_prefix="saccade")


@functools.cache
def _load() -> ctypes.CDLL | None:
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    found = shutil.which(compiler[0]) or shutil.which("gcc") or shutil.which("clang")
    if found is None or os.name != "posix":
        return None
    problem = ""
    for flags in FLAGS:
        command = [found, *compiler[1:], *flags, "-fPIC", "-shared"]
        try:
            return _compile(command)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or b""
            problem = f"{error} {said.decode(errors='replace')[:500]}".strip()
    warnings.warn(
        f"Saccade's C kernels could not be compiled, so slower PyTorch code takes their place: {problem} "
        "(SACCADE_NATIVE=0 turns them off without a word.)",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _compile(command: list[str]) -> ctypes.CDLL:
    """The library that `command` makes of the sources, from the cache if it is there."""
    name = f"kernels-{_fingerprint(command)}.so"
    cache = _cache()
    if cache is not None and (cache / name).exists():
        try:
            return ctypes.CDLL(str(cache / name))
        except OSError:  # damaged: made anew
            pass
    try:
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=cache)
    except OSError:  # a read-only home: compiled for this process alone
        folder = tempfile.TemporaryDirectory()
    with folder:
        made = Path(folder.name) / name
        subprocess.run(
            [*command, "-o", str(made), str(SOURCE / "kernels.c"), "-lm"],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        kernels = ctypes.CDLL(str(made))
        if cache is not None and made.parent.parent == cache:
            os.replace(made, cache / name)  # at once, so that another process never sees half a file
    return kernels


def _cache() -> Path | None:
    """Where compiled kernels are kept, or None if there is no home: others could write to any folder we might guess."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(given) if given else Path.home() / ".cache") / "saccade"
    except RuntimeError:
        return None


def _fingerprint(command: list[str]) -> str:
    """What the result depends on: sources, compiler, flags and processor."""
    digest = hashlib.sha256(repr((command, platform.machine(), platform.processor())).encode())
    for source in sorted(SOURCE.iterdir()):
        digest.update(source.read_bytes())
    compiler = os.stat(command[0])
    digest.update(repr((compiler.st_size, compiler.st_mtime_ns)).encode())
    try:
        about = Path("/proc/cpuinfo").read_text()
    except OSError:
        about = ""
    digest.update(
        repr([line for line in about.splitlines() if line.startswith(("model name", "flags", "Features"))][:2]).encode()
    )
    return digest.hexdigest()[:20]
