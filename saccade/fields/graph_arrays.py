"""The arrays of a graph in NumPy files: an archive, which is read, or a folder, whose features stay on disk."""

from __future__ import annotations

import math
import mmap
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from saccade.artifacts import ArtifactError
from saccade.artifacts.files import open_regular
from saccade.data.errors import DataError
from saccade.data.readers.parquet import MOST_BYTES, MOST_GROWTH

CSR = ("x_indptr", "x_indices", "x_data", "x_shape")
IN_FOLDER = ("edges", "x", "labels", "edge_features")
IN_ARCHIVE = (*IN_FOLDER, *CSR)
MAPPED = ("x", "edge_features")
"""Arrays that are read row by row, as batches need them; the others are read at once."""

BLOCK = 1 << 24
"""Bytes of a mapped array in memory at a time."""


def read_archive(path: str) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays of a graph in a NumPy archive, and the names of all arrays; checked before memory is allocated."""
    try:
        with open(path, "rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise ValueError("it is a single array")
        with zipfile.ZipFile(path) as archive:
            members = {about.filename.removesuffix(".npy"): about for about in archive.infolist()}
            return {name: _array(archive, members[name]) for name in IN_ARCHIVE if name in members}, list(members)
    except (ValueError, OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        fix = "Write it with np.savez, without arrays of objects"
        raise DataError(f"{path} is not a NumPy archive of plain arrays ({error}). {fix}.") from None
    except MemoryError:
        fix = "Write its arrays into a folder, each with np.save: features then stay in their files"
        raise DataError(f"{path} contains more than fits into the memory of this machine. {fix}.") from None


def read_folder(path: str) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays of a graph in a folder, x.npy and so on; those of features are mapped, not read."""
    names = sorted(each.name.removesuffix(".npy") for each in Path(path).glob("*.npy"))
    found: dict[str, NDArray[Any]] = {}
    for name in IN_FOLDER:
        if name in names:
            file = Path(path) / f"{name}.npy"
            try:
                array = mapped(file)
                found[name] = array if name in MAPPED else np.array(array)
            except (ValueError, OSError) as error:
                fix = "Write it with np.save, without objects"
                raise DataError(f"{file} is not a plain NumPy array ({error}). {fix}.") from None
            except MemoryError:
                raise DataError(f"{file} contains more than fits into the memory of this machine.") from None
    return found, names


class MappedArray(np.memmap[Any, Any]):
    """An array in a file. Other processes map the file again instead of copying it."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        if is_mapped(self):
            return mapped, (Path(self.filename or ""),)
        return np.asarray(self).__reduce_ex__(protocol)  # a part of it


def mapped(path: Path) -> NDArray[Any]:
    """Maps a .npy file as an array whose rows are read when they are used. The file must not change in the meantime.

    Raises `ValueError` or `OSError` if it is damaged.
    """
    with open_regular(path) as file:
        shape, by_columns, kind = _header(file, path.name)
        held = os.fstat(file.fileno()).st_size - file.tell()
        if kind.hasobject:
            raise ValueError("it contains Python objects")
        if math.prod(shape) * kind.itemsize > held:
            raise ValueError(f"it announces {shape} numbers, more than it contains")
        if by_columns and len(shape) > 1 and path.stem in MAPPED:
            raise ValueError("it is stored column by column; save np.ascontiguousarray of it")
        opened: Any = file  # a file that is only read, which NumPy's types do not know
        order: Literal["F", "C"] = "F" if by_columns else "C"
        found = MappedArray(opened, dtype=kind, mode="r", offset=file.tell(), shape=shape, order=order)
        found.filename = str(path.resolve())
        return found


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array is a memory-mapped file."""
    return isinstance(array, MappedArray) and isinstance(array.base, mmap.mmap)


def blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The rows of a matrix, a few megabytes at a time."""
    rows = max(1, BLOCK // max(1, array.itemsize * array.shape[1]))
    for start in range(0, len(array), rows):
        yield np.asarray(array[start : start + rows])


def write_rows(array: NDArray[Any], path: Path) -> None:
    """Writes a matrix as a .npy file of 32-bit numbers, block by block."""
    with open(path, "xb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, about)
        for block in blocks(array):
            file.write(block.astype("<f4").tobytes())


def mapped_rows(path: Path) -> NDArray[np.float32]:
    """What `write_rows` wrote, mapped and checked."""
    try:
        found = mapped(path)
    except (ValueError, OSError) as error:
        raise ArtifactError(f"{path} is damaged: {error}.") from None
    if found.ndim != 2 or not found.size or found.dtype != np.float32:
        raise ArtifactError(f"{path} is damaged: it has no 32-bit numbers (count, dim).")
    if not all(np.isfinite(block).all() for block in blocks(found)):
        raise ArtifactError(f"{path} is damaged: some features are not finite.")
    return found


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether it is stored column by column, and the type of an array; the file is then at its numbers."""
    version = np.lib.format.read_magic(file)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if header is None:
        raise ValueError(f"{name} has the format {version}")
    try:
        shape, by_columns, kind = header(file)
    except Exception as error:  # NumPy parses Python's syntax here, and lets any error of the parser through
        raise ValueError(f"the header of {name} is damaged") from error
    if any(not 0 <= size < 2**62 for size in shape):
        raise ValueError(f"{name} announces {shape} numbers, more than it contains")
    return shape, by_columns, kind


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is encrypted or compressed in another way than NumPy's")
    small, large = member.compress_size, member.file_size
    if large > MOST_BYTES and large > MOST_GROWTH * small:
        raise ValueError(f"{member.filename} has {small:,} bytes that become {large:,}; if that is right, store them")
    with archive.open(member) as file:
        shape, _, kind = _header(file, member.filename)
        if math.prod(shape) * kind.itemsize > member.file_size:
            raise ValueError(f"{member.filename} announces {shape} numbers, more than it contains")
    with archive.open(member) as file:
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return found
