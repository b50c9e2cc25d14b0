"""C kernels, shipped in a wheel or compiled on first use, and called through ctypes.

A wheel for this platform contains compiled kernels (see `prebuilt.py`). Otherwise nothing has to be built or installed:
the first call that can use them runs the system's C compiler for a second or two and keeps the result in the user's
cache folder, if that is private (see `cache.py`). Without a compiler, with `SACCADE_NATIVE=0` in the environment, or
for tensors that are not float32 or float64 on the CPU, callers take their plain PyTorch path. `SACCADE_NATIVE=compile`
compiles for exactly this processor even if the wheel brought kernels.
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

from saccade.kernels import cache, prebuilt
from saccade.kernels.modes import ordinary, plain_only, recording

SOURCE = Path(__file__).parent / "source"
FLAGS = (("-O3", "-march=native"), ("-O3",))  # some compilers do not support the native processor
SUFFIX = {torch.float32: "_float", torch.float64: "_double"}
SYMBOLS = (
    *(
        name + suffix
        for suffix in SUFFIX.values()
        for name in (
            "additive_backward",
            "additive_backward_items",
            "additive_forward",
            "additive_forward_items",
            "cross_entropy",
            "cross_entropy_items",
            "entmax15_backward",
            "entmax15_forward",
            "gat_backward",
            "gat_forward",
            "gather_backward",
            "gather_forward",
            "gatv2_backward",
            "gatv2_backward_keys",
            "gatv2_forward",
            "grow",
            "nonzero_rows",
            "rcnn_backward",
            "rcnn_forward",
            "scatter_sum",
            "segment_backward",
            "segment_forward",
            "skip_gram",
            "sparsemax_backward",
            "sparsemax_forward",
            "top_log_probs",
            "total_variation_prox",
        )
    ),
    "decoder_step_float",
    "linear_columns_float",
    "linear_float",
    "linear_top_float",
    "linear_whole_float",
    "log_mel_float",
    "chain_derivative_double",
    "chain_marginals_double",
    "monotonic_marginals_double",
    "non_projective_derivative_double",
    "non_projective_marginals_double",
    "projective_derivative_double",
    "projective_marginals_double",
)
"""Every function of the library; a new kernel adds its name."""
SMALL = 200_000
"""With fewer operations, passing work to another thread costs more than it saves."""


def usable(*tensors: Tensor) -> bool:
    """Whether there are kernels, they accept these tensors, and no tracer records operations on tensors."""
    return (
        not recording()
        and not plain_only()
        and all(t.is_cpu and t.dtype in SUFFIX and ordinary(t) for t in tensors)
        and library() is not None
    )


def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None if they are turned off or cannot be compiled."""
    return None if os.environ.get("SACCADE_NATIVE") == "0" else _load()


def function(name: str, dtype: torch.dtype) -> Callable[..., Any]:
    """A kernel by its name without the type's suffix; call it only if `usable`."""
    kernels = library()
    assert kernels is not None
    found: Callable[..., Any] = getattr(kernels, name + SUFFIX[dtype])
    return found


def count(name: str, dtype: torch.dtype, *sizes: int) -> int:
    """The result of a C function of longs that returns a long; call it only if `usable`."""
    answer = function(name, dtype)
    answer.restype = ctypes.c_long  # type: ignore[attr-defined]
    return int(answer(*map(ctypes.c_long, sizes)))


def run(kernel: Callable[..., Any], *arguments: Any, items: int, operations: float, alive: Any = None) -> list[Any]:
    """Calls `kernel(*arguments, first, last)` over all items, on as many threads as PyTorch uses.

    Tensors must be contiguous; None is a null pointer. `alive` is what the kernel reads by addresses in the arguments.
    Returns the results of the parts.
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
    others = [
        pool.submit(_part, kernel, converted, (arguments, alive), bounds[i], bounds[i + 1]) for i in range(1, parts)
    ]
    return [kernel(*converted, bounds[0], bounds[1]), *(other.result() for other in others)]


def check(results: Sequence[int]) -> None:
    """Raises `MemoryError` if a part of the work, done by a kernel that returns 1 without memory, failed."""
    if any(results):
        raise MemoryError("There is not enough memory for a kernel's working space.")


def _part(kernel: Callable[..., Any], converted: Sequence[Any], alive: Any, first: Any, last: Any) -> Any:
    """Keeps the tensors alive: an interrupt can end the caller while this thread still writes into them."""
    return kernel(*converted, first, last)


@functools.cache
def _pool(pid: int, workers: int) -> ThreadPoolExecutor:
    """Threads do not survive a fork, so each process has its own."""
    return ThreadPoolExecutor(workers, thread_name_prefix="saccade")


def status() -> str:
    """Which kernels are used here, and why: "native, compiled by /usr/bin/cc", "plain: no C compiler was found"."""
    if os.environ.get("SACCADE_NATIVE") == "0":
        return "plain: SACCADE_NATIVE=0 turns the C kernels off"
    brought, about = _brought()
    if brought is not None:
        return f"native, prebuilt for {about}"
    compiler = _compiler()
    if compiler is None:
        return f"plain: no C compiler was found, and of prebuilt kernels {about}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said here in our own words
        made = _load()
    if made is None:
        return f"plain: {compiler[0]} cannot compile them"
    return f"native, compiled by {compiler[0]} on first use ({about})"


@functools.cache
def _brought() -> tuple[ctypes.CDLL | None, str]:
    """The kernels of the wheel with the processor they are for; or None, with the reason."""
    if os.environ.get("SACCADE_NATIVE") == "compile":
        return None, "SACCADE_NATIVE=compile"
    path, about = prebuilt.find()
    try:
        return (None if path is None else _opened(path)), about
    except OSError as error:  # for another C library, for example
        return None, f"{path} cannot be loaded: {error}"


def _compiler() -> list[str] | None:
    """The C compiler with its first arguments; None if there is none."""
    wanted = shlex.split(os.environ.get("CC", "")) or ["cc"]
    found = shutil.which(wanted[0]) or shutil.which("gcc") or shutil.which("clang")
    return [found, *wanted[1:]] if found is not None and os.name == "posix" else None


@functools.cache
def _load() -> ctypes.CDLL | None:
    brought, _ = _brought()
    if brought is not None:
        return brought
    compiler = _compiler()
    if compiler is None:
        return None
    problem = ""
    for flags in FLAGS:
        command = [*compiler, *flags, "-fPIC", "-shared"]
        try:
            return _compile(command)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or b""
            problem = f"{error} {said.decode(errors='replace')[:500]}".strip()
    warnings.warn(
        f"Saccade's C kernels could not be compiled, so slower PyTorch code is used instead: {problem} "
        "(Set SACCADE_NATIVE=0 to turn them off without this warning.)",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _compile(command: list[str]) -> ctypes.CDLL:
    """The library that `command` builds from the sources, or the cached one."""
    fingerprint = _fingerprint(command)
    folder = cache.private_cache()
    try:
        found = None if folder is None else cache.find(folder, fingerprint)
        if found is not None:
            return _opened(found)
    except OSError:  # damaged or incomplete: compiled again
        pass
    try:
        scratch = tempfile.TemporaryDirectory(dir=folder)
    except OSError:  # full or read-only home: compile for this process only
        folder, scratch = None, tempfile.TemporaryDirectory()
    with scratch:
        made = Path(scratch.name) / "kernels.so"
        subprocess.run(
            [*command, "-o", str(made), str(SOURCE / "kernels.c"), "-lm"],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        kernels = _opened(made)
        if folder is not None:
            cache.keep(folder, fingerprint, made)
    return kernels


def _opened(path: Path) -> ctypes.CDLL:
    """Loads a library with every kernel; `OSError` if one is missing, or it is not a library."""
    kernels = ctypes.CDLL(str(path))
    missing = [name for name in SYMBOLS if not hasattr(kernels, name)]
    if missing:
        raise OSError(f"{path} lacks {', '.join(missing[:3])}")
    return kernels


def _fingerprint(command: list[str]) -> str:
    """A hash of everything the result depends on: sources, compiler, flags and processor."""
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
