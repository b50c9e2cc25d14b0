"""Small PNG and WAV files, written with only zlib and NumPy."""

import struct
import zlib
from typing import Any

import numpy as np

PNG = b"\x89PNG\r\n\x1a\n"
LOUDEST, QUIETEST = 99.5, 5.0
"""Percentiles drawn black and white, so that one click or a silent margin does not flatten the picture."""


def spectrogram_png(features: Any) -> bytes:
    """Draws a spectrogram as a greyscale PNG, low frequencies at the bottom, loud parts dark.

    Shapes:
        features (mels, frames): logarithmic, on any scale.
    """
    array = np.asarray(features, dtype=np.float32)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"features must be (mels, frames) with at least one of each, got shape {array.shape}.")
    if not np.isfinite(array).all():
        mel, frame = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"features must be finite, got {array[mel, frame]} at mel {mel}, frame {frame}.")
    low, high = np.percentile(array, [QUIETEST, LOUDEST])
    share = np.clip((array - low) / max(high - low, 1e-9), 0.0, 1.0)
    return grey_png(np.flipud(255 - np.round(255 * share)).astype(np.uint8))


def grey_png(pixels: "np.ndarray[Any, np.dtype[np.uint8]]") -> bytes:
    """Encodes (lines, columns) of grey values, 0 black, as a PNG file."""
    return _png(pixels[:, :, None], 0)


def colour_png(pixels: "np.ndarray[Any, np.dtype[np.uint8]]") -> bytes:
    """Encodes (lines, columns, 3) of red, green and blue as a PNG file."""
    return _png(pixels, 2)


def _png(pixels: "np.ndarray[Any, np.dtype[np.uint8]]", kind: int) -> bytes:
    lines, columns, channels = pixels.shape
    raw = np.zeros((lines, channels * columns + 1), np.uint8)  # each line starts with its filter: 0, none
    raw[:, 1:] = pixels.reshape(lines, -1)
    header = struct.pack(">IIBBBBB", columns, lines, 8, kind, 0, 0, 0)
    return PNG + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(raw.tobytes(), 9)) + _chunk(b"IEND", b"")


def wav(samples: Any, rate: int) -> bytes:
    """Encodes mono samples between -1 and 1 as a 16-bit WAV file."""
    array = np.asarray(samples, dtype=np.float32)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"samples must be one channel of at least one sample, got shape {array.shape}.")
    if not np.isfinite(array).all():
        place = int(np.argmax(~np.isfinite(array)))
        raise ValueError(f"samples must be finite, got {array[place]} at sample {place}.")
    if rate < 1:
        raise ValueError(f"rate must be a positive number of samples per second, got {rate}.")
    body = np.round(32767 * np.clip(array, -1.0, 1.0)).astype("<i2").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    data = struct.pack("<4sI", b"data", len(body)) + body
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
