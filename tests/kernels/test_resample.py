"""Resampling, next to sines that are known."""

import math

import pytest
import torch

from saccade.kernels.resample import resample


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
