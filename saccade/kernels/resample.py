"""Sound at another sample rate."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

CROSSINGS = 16
"""Zero crossings of the sinc on each side: its transition band takes about 6 % of the spectrum."""
ROLL_OFF = 0.95
"""Where the low-pass filter cuts, as a share of the lower of the two Nyquist frequencies."""
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
