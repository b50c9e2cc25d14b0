"""Recordings as log-mel features. WAV needs no library; others need soundfile: pip install soundfile"""

import io
import math
import struct
from pathlib import Path

import numpy as np

MARGIN, FRAMES = 0.1, 1024  # seconds beyond what is read, for resampling; frames that are computed at once
TYPES = {(1, 8): "u1", (1, 16): "<i2", (1, 24): "u1", (1, 32): "<i4", (3, 32): "<f4", (3, 64): "<f8"}


class InputReader:
    """A path, the bytes of a file, an array of samples, or {"array": ..., "sampling_rate": ...}."""

    def __init__(self, about):
        self.about, self.filters = about, np.array(about["filters"], dtype=np.float32)

    def encode(self, value, most=None):
        given = isinstance(value, dict) and value.get("array") is not None
        if given or isinstance(value, np.ndarray):
            samples = np.asarray(value["array"] if given else value, dtype=np.float32)
            rate = value.get("sampling_rate", self.about["rate"]) if given else self.about["rate"]
        else:
            samples, rate = read(value)
        seconds = len(samples) / rate
        if most is not None:  # what the model does not read need not be computed
            reach = (most * self.about["hop"] + self.about["window"]) / self.about["rate"] + MARGIN
            samples = samples[: int(reach * rate)]
        features = self.log_mel(resample(samples, rate, self.about["rate"]))[:most]
        mean, deviation = (np.array(self.about[name], dtype=np.float32) for name in ("mean", "deviation"))
        return {"features": (features - mean) / deviation, "seconds": seconds}

    def log_mel(self, samples):
        """(1 + samples // hop, bands): frames are centred, with zeros beyond both ends, under Hann's window."""
        window, hop, size = self.about["window"], self.about["hop"], 2 * (self.filters.shape[1] - 1)
        shape = np.zeros(size, dtype=np.float32)
        start = (size - window) // 2
        shape[start : start + window] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
        padded = np.pad(samples, size // 2)
        frames = np.lib.stride_tricks.sliding_window_view(padded, size)[: len(samples) + 1 : hop]
        parts = []
        for first in range(0, len(frames), FRAMES):
            power = np.abs(np.fft.rfft(frames[first : first + FRAMES] * shape)).astype(np.float32) ** 2
            parts.append(np.log(np.maximum(power @ self.filters.T, np.float32(1e-10))))
        return np.concatenate(parts)

    def size(self, encoded):
        return len(encoded["features"])

    def pad(self, several):
        lengths = np.array([len(each["features"]) for each in several])
        values = np.zeros((len(several), lengths.max(), len(self.filters)), dtype=np.float32)
        for row, each in enumerate(several):
            values[row, : lengths[row]] = each["features"]
        return {"values": values, "mask": np.arange(values.shape[1]) < lengths[:, None]}

    def names(self, encoded, count=None):
        """When each frame begins."""
        seconds, frames = encoded["seconds"], count or len(encoded["features"])
        digits = 2 if seconds >= 0.01 * frames else 3
        return [f"{seconds * frame / frames:.{digits}f} s" for frame in range(frames)]

    def seen(self, encoded, weights):
        keys = self.names(encoded)
        return weights[..., : len(keys)], keys


def read(source):
    """The sound of a file, mixed down to one channel, and its rate."""
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    kind, place, form = 0, 12, b""
    while content[:4] == b"RIFF" and place + 8 <= len(content):
        name, length = struct.unpack("<4sI", content[place : place + 8])
        body = content[place + 8 : place + 8 + length]
        if name == b"fmt ":
            form = body
        elif name == b"data" and len(form) >= 16:
            kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
            kind = int.from_bytes(form[24:26], "little") if kind == 0xFFFE else kind
            break
        place += 8 + length + length % 2
    if not kind or (kind, bits) not in TYPES or not channels:
        import soundfile

        sound, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
        return np.ascontiguousarray(sound.mean(axis=1), dtype=np.float32), rate
    raw = np.frombuffer(body[: len(body) // (channels * bits // 8) * (channels * bits // 8)], dtype=TYPES[kind, bits])
    if bits == 24:
        wide = np.zeros((len(raw) // 3, 4), dtype=np.uint8)
        wide[:, 1:] = raw.reshape(-1, 3)
        raw, bits = wide.view("<i4")[:, 0], 32
    sound = raw.reshape(-1, channels)
    if kind == 1:
        sound = (sound.astype(np.float64) - (128.0 if bits == 8 else 0.0)) / 2.0 ** (bits - 1)
    return np.ascontiguousarray(sound.mean(axis=1), dtype=np.float32), rate


def resample(samples, rate, to):
    """The sound at another rate, by a sinc under a squared cosine: 16 zero crossings to each side."""
    if rate == to:
        return samples
    divisor = math.gcd(rate, to)
    up, down = to // divisor, rate // divisor
    cut = 0.95 * min(rate, to) / rate
    half = 16 / cut
    reach = math.ceil(half)
    distance = np.arange(-reach, reach + 2) - np.arange(up)[:, None] / up
    shape = np.cos(np.clip(distance, -half, half) * np.pi / (2 * half)) ** 2
    filters = (np.sinc(distance * cut) * cut * shape).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(samples, (reach, reach + 1)), filters.shape[1])
    places = np.arange(-(-len(samples) * to // rate))
    parts = np.array_split(places, max(1, len(places) * filters.shape[1] >> 20))
    return np.concatenate([(windows[part * down // up] * filters[part * down % up]).sum(1) for part in parts])
