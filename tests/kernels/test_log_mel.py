"""Resampling and log-mel spectra, next to sines that are known and to sums written out."""

import math

import numpy as np
import pytest
import torch

from saccade.kernels.log_mel import fft_size, log_mel, log_mel_frames, mel_filters, resample


def sine(frequency: float, rate: int, count: int) -> torch.Tensor:
    return torch.sin(2 * math.pi * frequency * torch.arange(count, dtype=torch.float64) / rate).float()


@pytest.mark.parametrize(
    ("rate", "to"), [(44100, 8000), (48000, 16000), (8000, 16000), (22050, 8000), (11025, 8000), (8001, 8000)]
)
def test_a_resampled_sine_is_the_sine_at_the_other_rate(rate, to) -> None:
    for frequency in (100.0, 440.0, 3000.0):
        found = resample(sine(frequency, rate, rate // 4), rate, to)
        assert len(found) == math.ceil((rate // 4) * to / rate)
        wanted = sine(frequency, to, len(found))
        torch.testing.assert_close(found[200:-200], wanted[200:-200], rtol=0.0, atol=3e-3)


def test_what_the_lower_rate_cannot_hold_is_removed_and_not_folded_back() -> None:
    for frequency in (4400.0, 6000.0, 15000.0):
        found = resample(sine(frequency, 44100, 11025), 44100, 8000)
        assert float(found[200:-200].abs().max()) < 4e-3


def test_short_sounds_and_equal_rates() -> None:
    for count in (1, 2, 7):
        assert len(resample(torch.ones(count), 44100, 8000)) == math.ceil(count * 8000 / 44100)
    sound = torch.randn(50)
    assert resample(sound, 8000, 8000) is sound


def mel(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def hertz(mels: float) -> float:
    return 200 * mels / 3 if mels < 15 else 1000 * 6.4 ** ((mels - 15) / 27)


def triangles(rate: int, size: int, mels: int) -> np.ndarray:
    edges = [hertz(mel(rate / 2) * place / (mels + 1)) for place in range(mels + 2)]
    found = np.zeros((mels, size // 2 + 1))
    for band in range(mels):
        low, middle, high = edges[band : band + 3]
        for place in range(size // 2 + 1):
            frequency = place * rate / size
            height = 2 / (high - low)
            if low < frequency <= middle:
                found[band, place] = height * (frequency - low) / (middle - low)
            elif middle < frequency < high:
                found[band, place] = height * (high - frequency) / (high - middle)
    return found


@pytest.mark.parametrize(("rate", "size", "mels"), [(8000, 256, 40), (16000, 512, 80), (8000, 64, 7)])
def test_the_bands(rate, size, mels) -> None:
    np.testing.assert_allclose(mel_filters(rate, size, mels), triangles(rate, size, mels), atol=1e-7)


def test_log_mel_is_the_fourier_sum_written_out() -> None:
    rate, mels, window, hop = 8000, 9, 50, 20
    size = fft_size(window)
    assert size == 64
    sound = torch.randn(173).double().numpy()
    found = log_mel(torch.tensor(sound).float(), rate=rate, mels=mels, window=window, hop=hop)
    assert found.shape == (1 + 173 // hop, mels)
    left = (size - window) // 2
    shape = np.zeros(size)
    shape[left : left + window] = [0.5 - 0.5 * math.cos(2 * math.pi * n / window) for n in range(window)]
    padded = np.concatenate([np.zeros(size // 2), sound, np.zeros(size)])
    for frame in range(len(found)):
        part = padded[frame * hop : frame * hop + size] * shape
        power = []
        for k in range(size // 2 + 1):
            turn = 2 * math.pi * k * np.arange(size) / size
            power.append((part * np.cos(turn)).sum() ** 2 + (part * np.sin(turn)).sum() ** 2)
        wanted = np.log(np.maximum(triangles(rate, size, mels) @ np.array(power), 1e-10))
        np.testing.assert_allclose(found[frame], wanted, atol=1e-3)


def test_silence_has_the_smallest_power() -> None:
    found = log_mel(torch.zeros(400), rate=8000, mels=5, window=200, hop=80)
    torch.testing.assert_close(found, torch.full((6, 5), math.log(1e-10)))


@pytest.mark.parametrize("window", [50, 61])
def test_frames_of_a_part_are_those_of_the_whole(window) -> None:
    settings = {"rate": 8000, "mels": 9, "window": window, "hop": 20}
    sound = torch.randn(1000)
    whole = log_mel(sound, **settings)
    before = (window + 1) // 2
    part = log_mel_frames(sound[10 * 20 - before :], **settings)
    torch.testing.assert_close(part, whole[10 : 10 + len(part)])
    assert len(part) == 1 + (1000 - 200 + before - window) // 20
    assert log_mel_frames(sound[: window - 1], **settings).shape == (0, 9)
