"""Sound to features: resampling, log-mel spectra and cepstral coefficients."""

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
BANDS = 16  # that are computed in one product


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
    filters, reach = resample_filters(rate, to)
    padded = torch.nn.functional.pad(samples, (reach, reach + 1))
    divisor = math.gcd(rate, to)
    return resample_places(padded, torch.arange(count), filters, to // divisor, rate // divisor)


def resample_places(padded: Tensor, places: Tensor, filters: Tensor, up: int, down: int, start: int = 0) -> Tensor:
    """The outputs at these places, from samples that begin `reach` before number `start`: see `resample_filters`."""
    windows = padded.unfold(0, filters.shape[1], 1)
    parts = []
    for some in places.split(max(1, GATHERED // filters.shape[1])):
        before = some * down // up - start  # the last input sample that is not after the output
        parts.append((windows[before] * filters[some * down % up]).sum(dim=1))
    return torch.cat(parts) if parts else padded[:0]


@lru_cache(maxsize=4)  # odd rates need 50 MB each
def resample_filters(rate: int, to: int) -> tuple[Tensor, int]:
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
    before = (window + 1) // 2
    return log_mel_frames(
        torch.nn.functional.pad(samples, (before, window - before)), rate=rate, mels=mels, window=window, hop=hop
    )[: 1 + len(samples) // hop]


def log_mel_frames(samples: Tensor, *, rate: int, mels: int, window: int, hop: int) -> Tensor:
    """The same for the windows that the samples fill, the first of which begins with them.

    Shapes:
        samples (n,) -> (1 + (n - window) // hop, mels); none if n < window.
    """
    if len(samples) < window:
        return samples.new_zeros(0, mels)
    size = fft_size(window)
    shape, blocks = _hann(window), _filter_blocks(rate, size, mels)
    parts = []
    # The memory of long recordings is bounded. Where the window lies among the zeros only turns the phases.
    for frames in samples.unfold(0, window, hop).split(max(1, GATHERED // size)):
        spectrum = torch.fft.rfft(frames * shape, size)
        power = spectrum.real.square() + spectrum.imag.square()
        parts.append(torch.cat([power[:, first:last] @ filters for first, last, filters in blocks], dim=1))
    return torch.cat(parts).clamp_(min=FLOOR).log_()


def mfcc(
    samples: Tensor, *, rate: int, mels: int, window: int, hop: int, coefficients: int, top_db: float | None = None
) -> Tensor:
    r"""Mel-frequency cepstral coefficients: the cosine transform of the mel bands in decibels.

    .. math:: c_{tj} = \sum_m D_{jm} \frac{10}{\ln 10} f_{tm}, \qquad
        D_{jm} = \sqrt{\tfrac{2 - [j = 0]}{M}} \cos\left(\tfrac{\pi j (2m + 1)}{2M}\right)

    f is `log_mel`.

    Shapes:
        samples (n,) -> (1 + n // hop, coefficients).

    Args:
        samples, rate, mels, window, hop: as those of `log_mel`.
        coefficients: how many, from the lowest.
        top_db: how far below the loudest band of the recording the others may be; librosa's default is 80. Without it,
            a frame depends on its own samples alone.

    Reference:
        Davis and Mermelstein (1980), Comparison of parametric representations for monosyllabic word recognition.
    """
    return cepstrum(log_mel(samples, rate=rate, mels=mels, window=window, hop=hop), coefficients, top_db)


def cepstrum(log_bands: Tensor, coefficients: int, top_db: float | None = None) -> Tensor:
    """The coefficients (frames, coefficients) of logarithmic bands (frames, mels)."""
    decibels = log_bands * (10.0 / math.log(10.0))
    if top_db is not None and decibels.numel():
        decibels = decibels.clamp(min=float(decibels.max()) - top_db)
    return decibels @ _cosines(log_bands.shape[1], coefficients).T


@lru_cache(maxsize=8)
def _cosines(mels: int, coefficients: int) -> Tensor:
    """(coefficients, mels): rows of the orthonormal cosine transform."""
    places = torch.arange(mels, dtype=torch.float64) + 0.5
    waves = torch.cos(math.pi / mels * torch.arange(coefficients, dtype=torch.float64)[:, None] * places)
    waves *= math.sqrt(2.0 / mels)
    waves[0] /= math.sqrt(2.0)
    return waves.float()


@lru_cache(maxsize=8)
def _hann(window: int) -> Tensor:
    return torch.hann_window(window)


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


@lru_cache(maxsize=8)
def _filter_blocks(rate: int, size: int, mels: int) -> list[tuple[int, int, Tensor]]:
    """The filters of some neighbouring bands at a time: the bins that they cover, from first to last, and the weights
    (bins, bands). Most bins belong to no more than two bands, so these products are smaller than one with all filters.
    """
    found = []
    for filters in mel_filters(rate, size, mels).split(BANDS):
        bins = filters.any(dim=0).nonzero().squeeze(1)
        first, last = (int(bins[0]), int(bins[-1]) + 1) if len(bins) else (0, 1)
        found.append((first, last, filters[:, first:last].T.contiguous()))
    return found


# Linear up to 1000 Hz, where the scale is 15; logarithmic beyond.
_STEP = math.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    return hertz * 3 / 200 if hertz < 1000.0 else 15.0 + math.log(hertz / 1000.0) / _STEP


def _hertz(mel: Tensor) -> Tensor:
    return torch.where(mel < 15.0, mel * 200 / 3, 1000.0 * torch.exp(_STEP * (mel - 15.0)))
