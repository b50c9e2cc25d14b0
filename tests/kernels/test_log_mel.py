"""Log-mel spectra, next to sums written out."""

import math

import numpy as np
import pytest
import torch

from saccade.kernels.log_mel import fft_size, log_bands_reference, log_mel, log_mel_frames, mel_filters


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


@pytest.mark.parametrize(("mels", "window", "hop"), [(3, 9, 4), (5, 29, 7), (11, 128, 53), (7, 200, 199)])
@pytest.mark.parametrize("count", [1, 6, 211, 1709])
def test_the_kernel_agrees_with_its_reference(mels, window, hop, count) -> None:
    sound = torch.randn(count)
    found = log_mel(sound, rate=8000, mels=mels, window=window, hop=hop)
    start = -((window + 1) // 2)
    wanted = log_bands_reference(sound.double(), start, 1 + count // hop, 8000, mels, window, hop)
    torch.testing.assert_close(found, wanted.float(), rtol=1e-5, atol=1e-5)
    parts = log_mel_frames(sound, rate=8000, mels=mels, window=window, hop=hop)
    full = 1 + (count - window) // hop if count >= window else 0
    wanted = log_bands_reference(sound.double(), 0, full, 8000, mels, window, hop)
    torch.testing.assert_close(parts, wanted.float(), rtol=1e-5, atol=1e-5)


def test_a_sound_in_another_layout_with_a_gradient_or_without_numbers() -> None:
    settings = {"rate": 8000, "mels": 5, "window": 50, "hop": 20}
    sound = torch.randn(331)
    wanted = log_mel(sound, **settings)
    torch.testing.assert_close(log_mel(torch.stack([sound, sound], dim=1)[:, 0], **settings), wanted)
    tracked = sound.clone().requires_grad_()
    found = log_mel(tracked, **settings)
    found.sum().backward()
    torch.testing.assert_close(found, wanted)
    assert tracked.grad is not None
    assert bool(tracked.grad.isfinite().all())
    sound[100] = torch.nan
    beside = log_mel(sound, **settings).isnan().all(dim=1).nonzero().squeeze(1).tolist()
    assert beside == [4, 5, 6]  # a window begins at 20 t - 25
    loud = log_mel(torch.full((50,), 1e30), **settings)
    assert bool((loud == torch.inf).any())
