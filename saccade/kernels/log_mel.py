"""Sound to features: resampling and log-mel spectra."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

CROSSINGS = 16
"""Zero crossings of the sinc on each side: its transition band takes about 6 % of the spectrum."""
ROLL_OFF = 0.95
"""Where the low-pass filter cuts, as a share of the lower of the two Nyquist frequencies."""
FLOOR = 1e-10
"""The smallest power, that of silence."""
GATHERED = 1 << 20  # numbers in memory at a time


def resample(samples: Tensor, rate: int, to: int) -> Tensor:
    r"""Sound at another sample rate, by interpolation with a windowed sinc.

    .. math:: y_m = \sum_n x_n\, h\!\left(\tfrac{m}{r'} - \tfrac{n}{r}\right), \qquad
        h(t) = \tfrac{2c}{r} \operatorname{sinc}(2ct) \cos^2\!\left(\tfrac{\pi t}{2T}\right), \quad |t| < T

    c is the cut-off frequency. The ratio may be anything: each output has the filter of its own phase.

    Shapes:
        samples (n,) -> (ceil(n * to / rate),).

    Reference:
        Smith and Gossett (1984), A flexible sampling-rate conversion method.
    """
    if rate == to:
        return samples
    count = -(-len(samples) * to // rate)
    filters, reach = _filters(rate, to)
    padded = torch.nn.functional.pad(samples, (reach, reach + 1))
    windows = padded.unfold(0, filters.shape[1], 1)
    divisor = math.gcd(rate, to)
    up, down = to // divisor, rate // divisor
    parts = []
    for places in torch.arange(count).split(max(1, GATHERED // filters.shape[1])):
        before = places * down // up  # the last input sample that is not after the output
        parts.append((windows[before] * filters[places * down % up]).sum(dim=1))
    return torch.cat(parts) if parts else samples[:0]


@lru_cache(maxsize=4)  # odd rates need 50 MB each
def _filters(rate: int, to: int) -> tuple[Tensor, int]:
    """(phases, taps), and how many taps come before the sample at or before the output."""
    divisor = math.gcd(rate, to)
    up = to // divisor
    cut = ROLL_OFF * min(rate, to) / rate  # in units of the input's Nyquist frequency
    half = CROSSINGS / cut
    reach = math.ceil(half)
    taps = torch.arange(-reach, reach + 2, dtype=torch.float64)
    distance = taps - torch.arange(up, dtype=torch.float64)[:, None] / up  # in input samples
    shape = distance.clamp(-half, half).mul_(math.pi).div_(2 * half).cos_().square_()
    return distance.mul_(cut).sinc_().mul_(cut).mul_(shape).float(), reach


def log_mel(samples: Tensor, *, rate: int, mels: int, window: int, hop: int) -> Tensor:
    r"""The logarithm of the power in each mel band, frame by frame.

    .. math:: f_{tm} = \ln \max\Big(10^{-10}, \sum_k M_{mk} \Big|\sum_n w_n x_{th + n} e^{-2\pi i kn/N}\Big|^2\Big)

    Frames are centred on every `hop`-th sample, the first included, with zeros beyond both ends; w is Hann's window.

    Shapes:
        samples (n,) -> (1 + n // hop, mels).

    Args:
        samples: one channel.
        rate: samples per second.
        mels: the number of bands.
        window: samples in a window.
        hop: samples from one window to the next.
    """
    size = fft_size(window)
    shape = torch.hann_window(window)
    spectrum = torch.stft(samples, size, hop, window, shape, pad_mode="constant", return_complex=True)
    power: Tensor = mel_filters(rate, size, mels) @ spectrum.abs().square()
    return power.clamp(min=FLOOR).log().T.contiguous()


def fft_size(window: int) -> int:
    """The power of two that a window fits into."""
    return 1 << (window - 1).bit_length()


@lru_cache(maxsize=8)
def mel_filters(rate: int, size: int, mels: int) -> Tensor:
    """Triangles of equal area, evenly spaced on the mel scale of Slaney's Auditory Toolbox, up to half the rate.

    Shapes:
        -> (mels, size // 2 + 1).

    Reference:
        Slaney (1998), Auditory Toolbox, version 2.
    """
    edges = _hertz(torch.linspace(0.0, float(_mel(rate / 2)), mels + 2, dtype=torch.float64))
    bins = torch.arange(size // 2 + 1, dtype=torch.float64) * rate / size
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    triangles = torch.minimum(rising, falling).clamp(min=0.0)
    return (triangles * 2 / (high - low)).float()


# Linear up to 1000 Hz, where the scale is 15; logarithmic beyond.
_STEP = math.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    return hertz * 3 / 200 if hertz < 1000.0 else 15.0 + math.log(hertz / 1000.0) / _STEP


def _hertz(mel: Tensor) -> Tensor:
    return torch.where(mel < 15.0, mel * 200 / 3, 1000.0 * torch.exp(_STEP * (mel - 15.0)))
