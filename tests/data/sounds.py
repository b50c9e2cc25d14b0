"""WAV files made with the standard library, as an oracle for our own reader."""

import io
import struct
import wave
import zipfile
from pathlib import Path

import numpy as np


def tone(frequency: float, seconds: float, rate: int = 8000, loudness: float = 0.5) -> np.ndarray:
    return loudness * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)


def pcm(samples: np.ndarray, rate: int = 8000, bits: int = 16) -> bytes:
    """A file of integers; samples are (n,) or (n, channels) between -1 and 1."""
    frames = samples if samples.ndim == 2 else samples[:, None]
    whole = np.clip(np.round(frames * 2 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype(int)
    width = bits // 8
    if bits == 8:
        whole = whole + 128
    data = b"".join(int(each).to_bytes(width, "little", signed=bits > 8) for each in whole.ravel())
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(frames.shape[1])
        writer.setsampwidth(width)
        writer.setframerate(rate)
        writer.writeframes(data)
    return file.getvalue()


def floats(samples: np.ndarray, rate: int = 8000, bits: int = 32) -> bytes:
    """A file of floating-point numbers, with a chunk of odd length before the sound."""
    body = struct.pack(f"<{samples.size}{'f' if bits == 32 else 'd'}", *samples.ravel().tolist())
    form = struct.pack("<HHIIHH", 3, 1, rate, rate * bits // 8, bits // 8, bits)
    chunks = [(b"fmt ", form), (b"LIST", b"odd\0"[:3]), (b"data", body)]
    content = b"".join(k + struct.pack("<I", len(c)) + c + b"\0" * (len(c) % 2) for k, c in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(content)) + b"WAVE" + content


def digit_archive(path: Path, *, recordings: int, seconds: float) -> Path:
    """Tones named like spoken digits: two speakers, three digits, so many recordings of each, each a little longer."""
    with zipfile.ZipFile(path, "w") as archive:
        for digit in range(3):
            for speaker, pitch in (("ann", 500.0), ("bob", 300.0)):
                for number in range(recordings):
                    sound = pcm(tone(pitch * (digit + 1), seconds + 0.01 * number))
                    archive.writestr(f"recordings/{digit}_{speaker}_{number}.wav", sound)
    return path
