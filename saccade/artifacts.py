"""Files that survive a crash: written beside the old ones, synced, then renamed; checked by their sums when read.

Tensors are safetensors and everything else is JSON or text: nothing in an artifact is a pickle.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

CHECKSUMS = "checksums.json"
"""The file in a sealed folder that holds the SHA-256 of every other file."""


class ArtifactError(OSError):
    """A file or folder could not be written, or is not what was written."""


def write_file(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Replaces a file at once: after a crash there is the old content or the new, never a part of it."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        _write_synced(partial, content.encode() if isinstance(content, str) else content)
        os.replace(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise _explained(path, error) from error
    return path


def write_folder(path: str | os.PathLike[str], files: dict[str, bytes | Callable[[], bytes]]) -> Path:
    """Writes and seals a folder of files at once: it appears under its name when it is complete, or not at all.

    A folder that stands there already is replaced; it keeps its name until the new one is complete.

    Args:
        path: the folder.
        files: the content of each file, or a function that makes it, so that only one is in memory at a time.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    previous = path.with_name(f".{path.name}.previous")
    try:
        remove_folder(partial)
        partial.mkdir(parents=True)
        sums = {}
        for name, content in files.items():
            data = content() if callable(content) else content
            _write_synced(partial / name, data)
            sums[name] = hashlib.sha256(data).hexdigest()
        _write_synced(partial / CHECKSUMS, _as_json(sums))
        sync_folder(partial)
        if path.exists():
            remove_folder(previous)
            os.rename(path, previous)
        os.rename(partial, path)
        sync_folder(path.parent)
        remove_folder(previous)
    except OSError as error:
        remove_folder(partial)
        if previous.exists() and not path.exists():
            os.rename(previous, path)
        raise _explained(path, error) from error
    return path


def restore_folders(parent: str | os.PathLike[str]) -> None:
    """Tidies what a crash inside `write_folder` left: a replaced folder comes back, a partial one goes."""
    for previous in Path(parent).glob(".*.previous"):
        path = previous.with_name(previous.name.removeprefix(".").removesuffix(".previous"))
        if path.exists():
            remove_folder(previous)
        else:
            os.rename(previous, path)
    for pattern in (".*.partial", ".*.removed"):
        for left in Path(parent).glob(pattern):
            remove_folder(left) if left.is_dir() else left.unlink()


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Removes a folder if it is there, under a hidden name, so that no half of it is ever taken for the whole."""
    path = Path(path)
    if path.is_dir():
        if not path.name.startswith("."):
            hidden = path.with_name(f".{path.name}.removed")  # a partial one may be waiting to take its place
            shutil.rmtree(hidden, ignore_errors=True)
            path = path.rename(hidden)
        shutil.rmtree(path, ignore_errors=True)


def seal(folder: str | os.PathLike[str], files: Iterable[str]) -> None:
    """Writes the sums of files that stand in the folder already (paths relative to it)."""
    folder = Path(folder)
    write_file(folder / CHECKSUMS, _as_json({name: _sha256(folder / name) for name in files}))


def verify(folder: str | os.PathLike[str]) -> None:
    """Raises `ArtifactError` unless every file that the folder was sealed with is there, whole and unchanged."""
    folder = Path(folder)
    try:
        sums = json.loads((folder / CHECKSUMS).read_bytes())
        for name, expected in sums.items():
            if _sha256(folder / name) != expected:
                raise ArtifactError(f"{folder / name} is damaged: its SHA-256 is not that in {CHECKSUMS}.")
    except FileNotFoundError as error:
        raise ArtifactError(f"{folder} is incomplete: {Path(error.filename).name} is missing.") from None
    except (ValueError, AttributeError):
        raise ArtifactError(f"{folder / CHECKSUMS} is damaged: it does not hold the sums of files.") from None


def pack_tensors(tensors: dict[str, Tensor]) -> bytes:
    """The content of a safetensors file."""
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(Path(path).read_bytes())  # not mapped: the file may be replaced while they are in use
    except SafetensorError as error:
        raise ArtifactError(f"{path} is damaged: {error}") from None


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a model, each tied one once."""
    lasting = model.state_dict().keys()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in lasting}
    return {**{name: parameter.detach() for name, parameter in model.named_parameters()}, **buffers}


def set_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copies weights into a model whose names and shapes are the same."""
    expected = weights_of(model)
    missing, unknown = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    if missing or unknown:
        listed = "; ".join(
            f"{what} {', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"
            for what, names in (("missing:", missing), ("not in the model:", unknown))
            if names
        )
        raise ValueError(f"These weights belong to another model ({listed}). Build it with the run's own config.")
    for name, tensor in expected.items():
        if tensor.shape != weights[name].shape:
            raise ValueError(
                f"{name} is {tuple(tensor.shape)} in the model but {tuple(weights[name].shape)} in the file. "
                "Build the model with the run's own config."
            )
        tensor.copy_(weights[name])


def save_weights(model: nn.Module, path: str | os.PathLike[str]) -> Path:
    """Writes the model's weights as one safetensors file."""
    return write_file(path, pack_tensors(weights_of(model)))


def load_weights(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Reads what `save_weights` wrote into a model built in the same way."""
    set_weights(model, read_tensors(path))


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable; where the system cannot, it does it in its own time."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_synced(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _as_json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _explained(path: Path, error: OSError) -> ArtifactError:
    if isinstance(error, ArtifactError):
        return error
    return ArtifactError(error.errno, f"{error.strerror or error}; {path} was not written, what stood there is intact")
