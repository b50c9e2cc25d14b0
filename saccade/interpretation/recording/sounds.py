"""Recordings that a model attended to, and the time of each position."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.interpretation.explorer import SoundAxis

STEPS = (0.01, 0.02, 0.04, 0.08)
"""Seconds between two positions of the usual encoders."""
WHISPER = 0.02
"""Seconds between two positions of Whisper, which always reads half a minute."""
HALF_MINUTE = 1500
"""Its positions."""
FEATURE_STEP = 0.01
"""Seconds between two frames of the usual features."""


class Sounds:
    """The recordings of a batch.

    Args:
        given: samples (batch, samples) or (samples,), or features (batch, mels, frames) or (batch, frames, mels).
        rate: samples a second.
    """

    def __init__(self, given: Any, rate: int) -> None:
        values = torch.as_tensor(given).detach().float().cpu()
        self._values = values.unsqueeze(0) if values.dim() == 1 else values
        self._rate = rate

    def __len__(self) -> int:
        return len(self._values)

    def axis(self, row: int, positions: int) -> SoundAxis:
        """The axis with this many positions."""
        values = self._values[row]
        if values.dim() == 1:
            return self._of_samples(values, positions)
        # An encoder makes one position of one, two, four or eight frames.
        strides = [{-(-size // stride) for stride in (1, 2, 4, 8)} for size in values.shape]
        features = values.T if positions in strides[0] and positions not in strides[1] else values
        return SoundAxis.from_features(features, seconds=features.shape[1] * FEATURE_STEP, frames=positions)

    def cut(self, row: int, positions: int) -> bool:
        """Whether the model read only the beginning."""
        samples = self._values[row]
        return samples.dim() == 1 and covered(len(samples) / self._rate, positions) < len(samples) / self._rate

    def _of_samples(self, samples: Tensor, positions: int) -> SoundAxis:
        seconds = covered(len(samples) / self._rate, positions)
        size = round(seconds * self._rate)
        whole = F.pad(samples[:size], (0, max(size - len(samples), 0)))
        loudest = float(whole.abs().max())
        return SoundAxis.from_features(
            log_spectrogram(whole),
            seconds=seconds,
            frames=positions,
            samples=(whole / loudest if loudest > 1 else whole).numpy(),
            rate=self._rate,
        )


def is_sound(given: Any) -> bool:
    """Whether these are samples: floating-point numbers in one dimension, or a batch of such."""
    if isinstance(given, Tensor):
        return given.dim() in (1, 2) and given.is_floating_point()
    kind = getattr(getattr(given, "dtype", None), "kind", "")  # a NumPy array
    return kind == "f" and given.ndim in (1, 2)


def covered(seconds: float, positions: int) -> float:
    """How many seconds the positions cover: those of the recording, or more if the model pads it with silence.

    Of longer recordings, Whisper reads the first half minute.
    """
    for step in STEPS:
        if abs(positions * step - seconds) <= 2 * step + 0.02:
            return seconds
    if positions == HALF_MINUTE:
        return positions * WHISPER
    return max(positions * WHISPER, seconds)


def log_spectrogram(samples: Tensor) -> Tensor:
    """(frequencies, frames) of logarithmic energies, 100 to 200 of each second."""
    window = 256
    padded = F.pad(samples, (0, max(window - len(samples), 0)))
    hop = max(len(padded) // 2000, window // 2)
    found = torch.stft(padded, window, hop_length=hop, window=torch.hann_window(window), return_complex=True)
    return (found.abs() ** 2 + 1e-8).log()
