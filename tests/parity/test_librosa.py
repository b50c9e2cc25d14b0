"""Features of sounds against librosa's on the same parameters."""

import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from saccade.kernels.log_mel import log_mel, mfcc
from tests.data.sounds import tone

sys.modules.setdefault("soxr", ModuleType("soxr"))  # librosa imports it, for resampling, which is not compared here
librosa = pytest.importorskip("librosa")


def sound(rate: int) -> torch.Tensor:
    """A second of tones that come and go, and noise."""
    draws = np.random.default_rng(rate)
    swell = np.linspace(0.0, 1.0, rate) ** 2
    tones = sum(tone(hertz, 1.0, rate, 0.2) * np.roll(swell, rate * n // 3) for n, hertz in enumerate((170, 620, 2900)))
    return torch.tensor(tones + 0.01 * draws.standard_normal(rate)).float()


SETTINGS = [(8000, 40, 200, 80), (16000, 80, 400, 160), (16000, 23, 511, 200)]


def power(samples: torch.Tensor, rate: int, mels: int, window: int, hop: int) -> np.ndarray:
    size = 1 << (window - 1).bit_length()
    return librosa.feature.melspectrogram(
        y=samples.numpy(), sr=rate, n_fft=size, win_length=window, hop_length=hop, n_mels=mels, power=2.0
    )


@pytest.mark.parametrize(("rate", "mels", "window", "hop"), SETTINGS)
def test_log_mel(rate, mels, window, hop) -> None:
    samples = sound(rate)
    found = log_mel(samples, rate=rate, mels=mels, window=window, hop=hop)
    wanted = np.log(np.maximum(power(samples, rate, mels, window, hop), 1e-10)).T
    np.testing.assert_allclose(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("rate", "mels", "window", "hop"), SETTINGS)
@pytest.mark.parametrize("top_db", [None, 80.0])
def test_mfcc(rate, mels, window, hop, top_db) -> None:
    samples = sound(rate)
    found = mfcc(samples, rate=rate, mels=mels, window=window, hop=hop, coefficients=13, top_db=top_db)
    decibels = librosa.power_to_db(power(samples, rate, mels, window, hop), top_db=top_db)
    np.testing.assert_allclose(found, librosa.feature.mfcc(S=decibels, n_mfcc=13).T, atol=1e-4, rtol=1e-5)
