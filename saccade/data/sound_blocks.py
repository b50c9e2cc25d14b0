"""Recordings block by block, from files or from a pipe that is still being written."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from saccade.data.media import opened
from saccade.data.recordings import (
    EXTENSIBLE,
    FASTEST,
    LOUDEST,
    MOST_CHANNELS,
    SLOWEST,
    TYPES,
    Header,
    RecordingError,
    Samples,
    decode_wav,
    read_header,
    read_samples,
)

LONGEST_CHUNK = 1 << 20
"""Bytes of a chunk before the sound of a WAV file: titles, comments."""


class Blocks(NamedTuple):
    """A recording being read: its sample rate, and blocks of one channel between -1 and 1."""

    rate: int
    blocks: Iterator[Samples]


def read_blocks(path: str, seconds: float) -> Blocks:
    """A file, a few seconds at a time. Only WAV files are read as they grow; others are decoded first."""
    header = read_header(path)
    if header.kind:
        file = opened(path, RecordingError)
        file.seek(header.start)
        return Blocks(header.rate, _blocks(file, header, seconds, header.samples))
    samples, rate = read_samples(path)
    size = max(1, round(seconds * rate))
    return Blocks(rate, (samples[start : start + size] for start in range(0, len(samples), size)))


def pipe_blocks(file: BinaryIO, seconds: float) -> Blocks:
    """WAV from a pipe, a few seconds at a time, as they arrive."""
    first = file.read(12)
    if first[:4] != b"RIFF" or first[8:] != b"WAVE":
        problem = f"standard input is not a WAV file (it begins with {first[:8]!r})"
        raise RecordingError(problem, "Write WAV to the pipe, as arecord -t wav and ffmpeg -f wav - do")
    form = b""
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<4sI", head)
        if kind == b"data":
            header = _format(form)
            block = header.channels * header.bits // 8
            # Programs that write to a pipe do not know the length, and announce none or the largest.
            announced = length // block if 0 < length < 0x7FFF0000 else None
            return Blocks(header.rate, _blocks(file, header, seconds, announced))
        if length > LONGEST_CHUNK:
            break
        content = file.read(length + length % 2)
        form = content if kind == b"fmt " else form
    raise RecordingError("standard input ends before its sound", "Write a whole WAV file to the pipe")


def _format(form: bytes) -> Header:
    if len(form) < 16:
        raise RecordingError("standard input is damaged: its format is missing", "Write WAV to the pipe")
    kind, channels, rate, _, block, bits = struct.unpack("<HHIIHH", form[:16])
    if kind == EXTENSIBLE and len(form) >= 26:
        kind = int.from_bytes(form[24:26], "little")
    if (kind, bits) not in TYPES or not 1 <= channels <= MOST_CHANNELS or block != channels * bits // 8:
        problem = f"standard input contains samples of type {kind} with {bits} bits in {channels} channels"
        raise RecordingError(problem, "Write WAV of 16 bits to the pipe")
    if not SLOWEST <= rate <= FASTEST:
        raise RecordingError(f"standard input has a sample rate of {rate}", f"Use {SLOWEST:,} to {FASTEST:,}")
    return Header(rate, channels, 0, kind, bits)


def _blocks(file: BinaryIO, header: Header, seconds: float, samples: int | None) -> Iterator[Samples]:
    size = header.channels * header.bits // 8
    left = samples
    with file:
        while left is None or left > 0:
            wanted = max(1, round(seconds * header.rate))
            content = _read(file, size * (wanted if left is None else min(left, wanted)))
            content = content[: len(content) // size * size]
            if not content:
                if left:
                    raise RecordingError(f"it ends {left:,} samples too early", "Copy it again.")
                return
            sound = decode_wav(content, header)
            if not (np.abs(sound) <= LOUDEST).all():
                raise RecordingError("it contains samples that are NaN or far too large", "Record it again.")
            left = None if left is None else left - len(sound)
            yield np.ascontiguousarray(sound.mean(axis=1), dtype=np.float32)


def _read(file: BinaryIO, count: int) -> bytes:
    """Reads this many bytes, or fewer at the end; a pipe may deliver them piece by piece."""
    parts = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
