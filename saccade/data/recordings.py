"""Recordings: WAV files, read with NumPy, and other formats through an optional library."""

from __future__ import annotations

import importlib
import math
import os
import struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.data.media import MediaError, Source, opened

SLOWEST, FASTEST = 1_000, 384_000
"""The sample rates that are accepted; others mean that the file is damaged."""

MOST_CHANNELS = 64
LOUDEST = 2.0**32
"""Full scale is 1, or that of 32-bit integers; the power of far louder sounds is infinite."""
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
UNKNOWN_LENGTH = 0xFFFFFFFF
"""The length of the sound in a file that was written to a pipe: it extends to the end of the file."""

TYPES = {
    (PCM, 8): "u1",
    (PCM, 16): "<i2",
    (PCM, 24): "u1",
    (PCM, 32): "<i4",
    (FLOAT, 32): "<f4",
    (FLOAT, 64): "<f8",
}
OGG = b"OggS"
LONGEST_PAGE = 27 + 255 + 255 * 255  # bytes of an Ogg page
LAST_PAGE = 4  # the flag of the page that ends an Ogg stream
MAGIC = {b"fLaC": "FLAC", OGG: "Ogg", b"RF64": "RF64", b"FORM": "AIFF", b"ID3\x03": "MP3", b"ID3\x04": "MP3"}
CHECKED = 1 << 20  # bytes that are checked at a time
CONVERT = 'Install soundfile (pip install "saccade[audio]"), or convert it to WAV (ffmpeg -i in.flac out.wav).'

Samples = NDArray[np.float32]


class RecordingError(MediaError):
    """A recording that cannot be used."""


class Header(NamedTuple):
    """What a file's header says about its sound."""

    rate: int
    channels: int
    samples: int
    """Per channel."""
    kind: int = 0
    """PCM or FLOAT; 0 if another library reads the file."""
    bits: int = 0
    start: int = 0
    """The byte where the sound begins."""


def read_header(source: Source) -> Header:
    """Checks that a file is a complete recording that is not empty, without decoding it.

    Floating-point samples are read, since they can be NaN; integers cannot.
    """
    with opened(source, RecordingError) as file:
        header = _header(file)
        if not header.kind:
            _check_end(file, header)
        if header.samples < 1:
            raise RecordingError("it contains no sound (0 samples)", "Record it again, or leave it out.")
        if header.kind == FLOAT:
            file.seek(header.start)
            left = header.samples * header.channels * header.bits // 8
            while left:
                part = np.frombuffer(file.read(min(left, CHECKED)), dtype=TYPES[FLOAT, header.bits])
                _check_finite(part)
                left -= part.nbytes
        return header


def read_samples(source: Source, seconds: float | None = None) -> tuple[Samples, int]:
    """The sound, mixed down to one channel between -1 and 1, and its sample rate.

    Args:
        source: a path, or the contents of a file.
        seconds: how much to read from the start; all by default.
    """
    with opened(source, RecordingError) as file:
        header = _header(file)
        count = header.samples if seconds is None else min(math.ceil(seconds * header.rate), header.samples)
        sound = _from_library(file, count) if not header.kind else _from_wav(file, header, count)
        if len(sound) < count:
            raise RecordingError(f"it ends after {len(sound):,} of its {header.samples:,} samples", "Copy it again.")
    _check_finite(sound)
    return np.ascontiguousarray(sound.mean(axis=1), dtype=np.float32), header.rate


def as_wav(samples: Any, rate: int) -> bytes:
    """Samples in memory as the contents of a WAV file with 32-bit floating-point samples: nothing is rounded.

    Args:
        samples: (samples,) or (channels, samples); integers have the full range of their type.
        rate: samples per second.
    """
    array = np.asarray(samples)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iuf" or (array.ndim == 2 and len(array) > MOST_CHANNELS):
        fix = "Give (samples,) or (channels, samples) of numbers."
        raise RecordingError(f"its samples are an array of {array.dtype} of shape {array.shape}", fix)
    if not isinstance(rate, int | np.integer) or isinstance(rate, bool) or not SLOWEST <= rate <= FASTEST:
        raise RecordingError(f"its sample rate is {rate!r:.20}", f"It must be from {SLOWEST:,} to {FASTEST:,}.")
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        middle = (int(limits.max) + int(limits.min) + 1) // 2  # unsigned samples are silent in the middle
        array = (array.astype(np.float64) - middle) / (int(limits.max) - middle + 1)
    mono = array if array.ndim == 1 else array.mean(axis=0)
    body = np.ascontiguousarray(mono, dtype="<f4").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, FLOAT, 1, int(rate), 4 * int(rate), 4, 32)
    data = struct.pack("<4sI", b"data", len(body)) + body
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data


def _header(file: BinaryIO) -> Header:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    first = file.read(12)
    if not size:
        raise RecordingError("it is an empty file", "Record or copy it again.")
    if first[:4] == b"RIFF" and first[8:] == b"WAVE":
        return _wav_header(file, size)
    if first[:4] in MAGIC:
        return _library_header(file, MAGIC[first[:4]])
    raise RecordingError(f"it is not a recording (it begins with {first[:8]!r})", "Give a WAV, FLAC or OGG file.")


def _wav_header(file: BinaryIO, size: int) -> Header:
    form = b""
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<4sI", head)
        here = file.tell()
        if kind == b"fmt ":
            form = file.read(min(length, 40))
        elif kind == b"data":
            left = size - here
            if length == UNKNOWN_LENGTH:
                length = left
            if length > left:
                problem = f"it is truncated: it announces {length:,} bytes of sound but contains {left:,}"
                raise RecordingError(problem, "Copy it again.")
            return _wav_format(file, form, here, length)
        file.seek(here + length + length % 2)
    raise RecordingError("it is truncated: it ends before its sound", "Copy it again.")


def _wav_format(file: BinaryIO, form: bytes, start: int, length: int) -> Header:
    if len(form) < 16:
        raise RecordingError("it is damaged: its format is missing", "Copy it again.")
    kind, channels, rate, _, block, bits = struct.unpack("<HHIIHH", form[:16])
    if kind == EXTENSIBLE and len(form) >= 26:
        kind = int.from_bytes(form[24:26], "little")
    if (kind, bits) not in TYPES:
        return _library_header(file, f"WAV with samples of type {kind} and {bits} bits")
    if not 1 <= channels <= MOST_CHANNELS or block != channels * bits // 8 or not SLOWEST <= rate <= FASTEST:
        problem = f"it is damaged: it announces {channels} channels at {rate} Hz in blocks of {block} bytes"
        raise RecordingError(problem, "Copy it again.")
    return Header(rate, channels, length // block, kind, bits, start)


def _from_wav(file: BinaryIO, header: Header, count: int) -> NDArray[Any]:
    """(samples, channels)."""
    file.seek(header.start)
    return decode_wav(file.read(count * header.channels * header.bits // 8), header)


def decode_wav(content: bytes, header: Header) -> NDArray[Any]:
    """(samples, channels): the samples in these bytes of a WAV file."""
    kind, bits = header.kind, header.bits
    raw = np.frombuffer(content, dtype=TYPES[kind, bits])
    if kind == FLOAT:
        return raw.reshape(-1, header.channels)
    if bits == 24:
        wide = np.zeros((len(raw) // 3, 4), np.uint8)
        wide[:, 1:] = raw[: 3 * len(wide)].reshape(-1, 3)
        raw, bits = wide.view("<i4")[:, 0], 32
    middle = 128.0 if bits == 8 else 0.0
    return ((raw.astype(np.float64) - middle) / 2.0 ** (bits - 1)).reshape(-1, header.channels)


def _library(what: str) -> Any:
    try:
        return importlib.import_module("soundfile")
    except ModuleNotFoundError:
        raise RecordingError(f"it is {what}, which needs another library", CONVERT) from None


def _library_header(file: BinaryIO, what: str) -> Header:
    library = _library(what)
    file.seek(0)
    try:
        found = library.info(file)
    except RuntimeError as error:  # all errors of the library are
        raise RecordingError(f"it is damaged ({error})", "Copy it again.") from None
    if not SLOWEST <= found.samplerate <= FASTEST or not 1 <= found.channels <= MOST_CHANNELS:
        problem = f"it is damaged: it announces {found.channels} channels at {found.samplerate} Hz"
        raise RecordingError(problem, "Copy it again.")
    return Header(int(found.samplerate), int(found.channels), int(found.frames))


def _check_end(file: BinaryIO, header: Header) -> None:
    """Rejects a truncated compressed file, without decoding all of it."""
    cut = RecordingError("it is truncated: its end is missing", "Copy it again.")
    file.seek(0)
    if file.read(4) == OGG:  # what is left of a stream that was cut is whole in itself: only its last page tells
        file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_PAGE))
        tail = file.read()
        start = tail.rfind(OGG)
        page = tail[start:] if start >= 0 else b""
        if len(page) < 27 or not page[5] & LAST_PAGE or len(page) < 27 + page[26] + sum(page[27 : 27 + page[26]]):
            raise cut
        return
    if header.samples < 1:
        return
    file.seek(0)
    try:
        with _library("compressed").SoundFile(file) as sound:
            sound.seek(header.samples - 1)
            ended = len(sound.read(1)) == 1
    except RuntimeError:
        ended = False
    if not ended:
        raise cut


def _from_library(file: BinaryIO, count: int) -> NDArray[Any]:
    file.seek(0)
    try:
        sound: NDArray[Any] = _library("compressed").read(file, frames=count, dtype="float32", always_2d=True)[0]
    except RuntimeError as error:
        raise RecordingError(f"it is damaged ({error})", "Copy it again.") from None
    return sound


def _check_finite(sound: NDArray[Any]) -> None:
    if not (np.abs(sound) <= LOUDEST).all():  # nor if one is NaN
        raise RecordingError(
            "it contains samples that are NaN or infinite, or far too large", "Record or convert it again."
        )
