"""Kernels that ship compiled in a wheel: available at once, and without a compiler.

They are plain C called through pointers, so they depend on neither PyTorch's version nor its ABI, but only on the
sources, the system and the processor, which `about.json` records. If these do not match, they are compiled on first use
(see `native.py`). The build hook loads this file on its own, so it only imports the standard library.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "source"
FOLDER = Path(__file__).parent / "prebuilt"
ABOUT = "about.json"
V3 = frozenset({"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})
V4 = V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {
        "x86-64-v4-vnni": V4 | {"avx512_vnni"},
        "x86-64-v4": V4,
        "x86-64-v3": V3,
        "x86-64-v2": frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
    },
    "aarch64": {"armv8-a": frozenset()},
    "arm64": {"armv8-a": frozenset()},
}
"""For each machine the processors to compile for, the best first, and the features (as Linux names them) they need."""

FLAGS = {"x86-64-v4-vnni": ["-march=x86-64-v4", "-mavx512vnni"]}
"""How compilers name a kind of processor, if not by `-march` and its own name."""


def build(folder: Path, compiler: list[str], source: Path = SOURCE) -> list[Path]:
    """Compiles the kernels for each kind of processor of this machine, with a record; returns all files."""
    levels = LEVELS.get(platform.machine(), {})
    if not levels:
        raise OSError(f"Saccade has no list of processors for {platform.machine()}")
    folder.mkdir(parents=True, exist_ok=True)
    sums = {}
    for level in levels:
        made = folder / f"kernels-{level}.so"
        flags = [
            "-O3",
            *FLAGS.get(level, [f"-march={level}"]),
            "-fPIC",
            "-shared",
            *compiler[1:],
        ]  # the user's own count
        command = [compiler[0], *flags, "-o", str(made), str(source / "kernels.c"), "-lm"]
        # Without a limit: on a busy machine one would leave the kernels out of the wheel.
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        sums[level] = _sha256(made)
    about = {"sources": digest(source), "system": sys.platform, "machine": platform.machine(), "levels": sums}
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return sorted(folder.iterdir())


def find(folder: Path = FOLDER, source: Path = SOURCE) -> tuple[Path | None, str]:
    """The best library for this processor, with its kind; or None, with the reason."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        sums = dict(about["levels"])
    except FileNotFoundError:
        return None, "this installation has none"
    except (OSError, ValueError, KeyError, TypeError):
        return None, f"{folder / ABOUT} is damaged"
    if about.get("sources") != digest(source):
        return None, "they were compiled from other sources"
    if (about.get("system"), about.get("machine")) != (sys.platform, platform.machine()):
        return None, f"they were compiled for {about.get('machine')}"
    features = processor_features()
    for level, needed in LEVELS.get(platform.machine(), {}).items():
        library = folder / f"kernels-{level}.so"
        if level in sums and needed <= features and library.is_file():
            if _sha256(library) != sums[level]:
                return None, f"{library} is damaged"
            return library, level
    return None, "this processor is older than those they were compiled for"


def processor_features() -> frozenset[str]:
    """What this processor can do, as far as Linux says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def digest(source: Path = SOURCE) -> str:
    """A hash of the sources."""
    found = hashlib.sha256()
    for file in sorted(source.iterdir()):
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
