"""Features of a sound: frames of mel bands or cepstral coefficients."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.data.recordings import FASTEST, SLOWEST
from saccade.kernels.log_mel import cepstrum, fft_size, log_mel, mel_filters

FeatureKind = Literal["log_mel", "mfcc"]

MOST_WEIGHTS = 2**23
"""The maximum size of the filter bank: a hundred times what speech needs."""
DECIBEL = math.log(10.0) / 10.0  # of power, as a natural logarithm


class SoundFeatures:
    """Computes features (frames, dim) of sounds (samples,) at one sample rate.

    Args:
        rate: samples per second.
        kind: "log_mel" or "mfcc".
        mels: the number of mel bands.
        coefficients: the number of cepstral coefficients, with "mfcc".
        window, hop: the length of a frame, and the time from one to the next, in seconds.
    """

    def __init__(
        self, *, rate: int, kind: FeatureKind, mels: int, coefficients: int, window: float, hop: float
    ) -> None:
        if not SLOWEST <= rate <= FASTEST:
            raise ValueError(f"rate must be from {SLOWEST:,} to {FASTEST:,} samples per second, got {rate}.")
        if kind not in ("log_mel", "mfcc"):
            raise ValueError(f"features must be 'log_mel' or 'mfcc', got {kind!r}.")
        check_count("mels", mels)
        check_count("coefficients", coefficients)
        if kind == "mfcc" and coefficients > mels:
            raise ValueError(f"coefficients={coefficients} cannot be more than mels={mels}.")
        if not 1 / rate <= hop <= window <= 1.0:
            raise ValueError(f"hop and window must be in seconds, with hop <= window <= 1, got {hop} and {window}.")
        self.rate, self.mels = rate, mels
        self.coefficients = coefficients if kind == "mfcc" else None
        self.window, self.hop = round(window * rate), round(hop * rate)
        size = fft_size(self.window)
        if mels * size > MOST_WEIGHTS:
            raise ValueError(f"mels={mels} is too many for windows of {self.window} samples: use shorter windows.")
        if mels > size // 2 or not mel_filters(rate, size, mels).sum(dim=1).all():
            raise ValueError(f"mels={mels} is too many for windows of {self.window} samples: some bands are empty.")

    @property
    def dim(self) -> int:
        """Features of a frame."""
        return self.coefficients or self.mels

    def bands(self, samples: Tensor) -> Tensor:
        """Logarithmic mel bands (frames, mels)."""
        return log_mel(samples, rate=self.rate, mels=self.mels, window=self.window, hop=self.hop)

    def of_bands(self, bands: Tensor) -> Tensor:
        """The features (frames, dim) of logarithmic mel bands (frames, mels)."""
        return bands if self.coefficients is None else cepstrum(bands, self.coefficients)

    def of(self, samples: Tensor) -> Tensor:
        """The features (frames, dim) of a sound."""
        return self.of_bands(self.bands(samples))

    def gained(self, decibels: Tensor) -> Tensor:
        """(1, dim): what a gain adds to the features; a factor becomes a summand in the logarithm."""
        return self.of_bands(decibels * DECIBEL * torch.ones(1, self.mels))

    def describe(self) -> str:
        """A short description: 40 mel bands at 8 kHz."""
        kind = f"{self.mels} mel bands" if self.coefficients is None else f"{self.coefficients} cepstral coefficients"
        return f"{kind} at {self.rate / 1000:g} kHz"


def masked(features: Tensor, masks: tuple[tuple[int, int, int], ...], generator: torch.Generator) -> Tensor:
    """Features (frames, dim) with stretches set to 0, which is their mean.

    Args:
        features: of one recording.
        masks: for each kind of mask the dimension (0 for frames), how many there are, and how wide they may be.
        generator: draws places and widths.

    Reference:
        Park et al. (2019), SpecAugment, arXiv:1904.08779.
    """
    for dim, count, width in masks:
        for _ in range(count):
            size = int(torch.randint(min(width, features.shape[dim] // 2) + 1, (), generator=generator))
            start = int(torch.randint(features.shape[dim] - size + 1, (), generator=generator))
            place = torch.arange(features.shape[dim])
            blank = (place >= start) & (place < start + size)
            features = features.masked_fill(blank[:, None] if dim == 0 else blank, 0.0)
    return features
