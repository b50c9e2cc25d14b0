"""onnxruntime-web, which runs models in a browser: found in a folder, in the cache, or fetched from npm."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from saccade.kernels.cache import private_cache

VERSION = "1.30.0"
SCRIPT, BINARY = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
SUMS = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    BINARY: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
"""The SHA-256 of the two files of that version that a page embeds: no other content gets into a page."""

PLACES = (".", "dist", "node_modules/onnxruntime-web/dist")
COMMAND = f"npm install onnxruntime-web@{VERSION}"


class WebRuntime(NamedTuple):
    """The script and the WebAssembly of onnxruntime-web."""

    script: str
    binary: bytes


def web_runtime(folder: str | None = None) -> WebRuntime:
    """The runtime in this folder, or in the user's cache, where npm installs it if necessary."""
    if folder is not None:
        found = _read(Path(folder))
        if found is None:
            raise ValueError(
                f"--runtime {folder} does not contain onnxruntime-web {VERSION}: {COMMAND} there, or omit --runtime."
            )
        return found
    cache = private_cache()
    kept = None if cache is None else cache / f"onnxruntime-web-{VERSION}"
    found = None if kept is None else _read(kept)
    if found is not None:
        return found
    if shutil.which("npm") is None:
        raise ValueError(
            f"A page embeds onnxruntime-web {VERSION}, which npm fetches, but there is no npm: install Node.js, or run "
            f"`{COMMAND}` on another machine and pass its folder as --runtime."
        )
    with tempfile.TemporaryDirectory() as scratch:
        _fetch(Path(scratch))
        found = _read(Path(scratch))
        if found is None:
            raise ValueError(f"What npm fetched as onnxruntime-web {VERSION} is not that version: try again.")
        if kept is not None:
            kept.mkdir(exist_ok=True)
            for name in SUMS:
                shutil.copyfile(Path(scratch) / name, kept / name)
    return found


def _read(folder: Path) -> WebRuntime | None:
    """The two files, if they are there and are what they should be."""
    for place in PLACES:
        files = {name: folder / place / name for name in SUMS}
        if all(file.is_file() for file in files.values()):
            content = {name: file.read_bytes() for name, file in files.items()}
            if all(hashlib.sha256(content[name]).hexdigest() == SUMS[name] for name in SUMS):
                return WebRuntime(content[SCRIPT].decode(), content[BINARY])
    return None


def _fetch(folder: Path) -> None:
    """Lets npm fetch the package, and takes the two files out of it. Nothing of it is run."""
    command = ["npm", "pack", f"onnxruntime-web@{VERSION}", "--silent", "--pack-destination", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, cwd=folder)
    packed = next(folder.glob("*.tgz"), None)
    if made.returncode or packed is None:
        said = " ".join(made.stderr.split())[-300:]
        raise ValueError(f"npm could not fetch onnxruntime-web {VERSION}: {said or 'it wrote nothing'}")
    with tarfile.open(packed) as archive:
        for name in SUMS:
            content = archive.extractfile(f"package/dist/{name}")
            if content is not None:
                (folder / name).write_bytes(content.read())
