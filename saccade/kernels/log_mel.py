"""Sound to features: log-mel spectra and cepstral coefficients."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels import native

FLOOR = 1e-10
"""The smallest power, that of silence."""
GATHERED = 1 << 20  # numbers in memory at a time
BANDS = 16  # that are computed in one product
SMALLEST = 16  # of the transforms that the kernel computes


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
    return _log_bands(samples, -((window + 1) // 2), 1 + len(samples) // hop, rate, mels, window, hop)


def log_mel_frames(samples: Tensor, *, rate: int, mels: int, window: int, hop: int) -> Tensor:
    """The same for the windows that the samples fill, the first of which begins with them.

    Shapes:
        samples (n,) -> (1 + (n - window) // hop, mels); none if n < window.
    """
    count = 1 + (len(samples) - window) // hop if len(samples) >= window else 0
    return _log_bands(samples, 0, count, rate, mels, window, hop)


def _log_bands(samples: Tensor, start: int, count: int, rate: int, mels: int, window: int, hop: int) -> Tensor:
    """`log_bands_reference`, frame by frame without intermediate results in memory."""
    size = fft_size(window)
    ready = samples.dtype == torch.float32 and not samples.requires_grad and native.usable(samples)
    if not ready or size < SMALLEST or not count:
        return log_bands_reference(samples, start, count, rate, mels, window, hop)
    samples = samples.contiguous()
    order, waves = _transform(size)
    bins, filters = _packed_filters(rate, size, mels)
    found = samples.new_empty(count, mels)
    done = native.run(
        native.function("log_mel", samples.dtype),
        *(samples, len(samples), start, hop, _hann(window), window, size // 2, order, waves, bins, filters),
        *(mels, FLOOR, found),
        items=count,
        operations=2.0 * count * size * math.log2(size),
    )
    native.check(done)
    return found


def log_bands_reference(samples: Tensor, start: int, count: int, rate: int, mels: int, window: int, hop: int) -> Tensor:
    """The logarithms of the bands of `count` windows, the first of which begins with sample number `start`.

    Shapes:
        samples (n,) -> (count, mels).
    """
    if not count:
        return samples.new_zeros(0, mels)
    size = fft_size(window)
    shape, blocks = _hann(window).to(samples), _filter_blocks(rate, size, mels)
    padded = F.pad(samples, (-start, max(0, start + (count - 1) * hop + window - len(samples))))
    parts = []
    # The memory of long recordings is bounded. Where the window lies among the zeros only turns the phases.
    for frames in padded.unfold(0, window, hop)[:count].split(max(1, GATHERED // size)):
        spectrum = torch.fft.rfft(frames * shape, size)
        power = spectrum.real.square() + spectrum.imag.square()
        parts.append(torch.cat([power[:, first:last] @ filters.to(power) for first, last, filters in blocks], dim=1))
    return torch.cat(parts).clamp(min=FLOOR).log()


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


@lru_cache(maxsize=8)
def _packed_filters(rate: int, size: int, mels: int) -> tuple[Tensor, Tensor]:
    """For each band how many bins it covers, and the first one: int64 (mels, 2); and the weights, band after band."""
    found, weights = [], []
    for filters in mel_filters(rate, size, mels):
        bins = filters.nonzero().squeeze(1).tolist() or [0]
        first, last = bins[0], bins[-1] + 1
        found.append((last - first, first))
        weights.append(filters[first:last])
    return torch.tensor(found), torch.cat(weights)


@lru_cache(maxsize=8)
def _transform(size: int) -> tuple[Tensor, Tensor]:
    """int64 (size / 2,), the numbers whose bits are reversed, and (size / 2, 2), the waves exp(-2 pi i k / size)."""
    points = size // 2
    order = torch.zeros(1, dtype=torch.long)
    while len(order) < points:
        order = torch.cat([2 * order, 2 * order + 1])
    turns = torch.arange(points, dtype=torch.float64) * (-2 * math.pi / size)
    return order, torch.stack([turns.cos(), turns.sin()], dim=1).float().contiguous()


# Linear up to 1000 Hz, where the scale is 15; logarithmic beyond.
_STEP = math.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    return hertz * 3 / 200 if hertz < 1000.0 else 15.0 + math.log(hertz / 1000.0) / _STEP


def _hertz(mel: Tensor) -> Tensor:
    return torch.where(mel < 15.0, mel * 200 / 3, 1000.0 * torch.exp(_STEP * (mel - 15.0)))
