"""Sound that arrives in parts: resampled, and turned into frames, as soon as what they need has been heard.

The parts together give what `resample` and `log_mel` give for the whole.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from saccade.kernels.log_mel import log_mel_frames
from saccade.kernels.resample import resample_filters, resample_places


class ResampleStream:
    """`resample`, part by part.

    Args:
        rate: samples per second that arrive.
        to: samples per second that are wanted.
    """

    def __init__(self, rate: int, to: int) -> None:
        self.rate, self.to = rate, to
        divisor = math.gcd(rate, to)
        self.up, self.down = to // divisor, rate // divisor
        self.reach = 0 if rate == to else resample_filters(rate, to)[1]
        self.kept = torch.zeros(self.reach)  # what later outputs need, the first `reach` of which are before the start
        self.dropped = 0  # samples before those
        self.heard = self.done = 0

    def push(self, samples: Tensor, *, last: bool = False) -> Tensor:
        """The sound that more samples (n,) complete; after the last ones, all that is left."""
        if self.rate == self.to:
            return samples
        filters, reach = resample_filters(self.rate, self.to)
        self.heard += len(samples)
        self.kept = torch.cat([self.kept, samples, torch.zeros(reach + 1 if last else 0)])
        # Output m needs the inputs up to floor(m * down / up) + reach + 1.
        ready = -(-self.heard * self.to // self.rate) if last else (self.heard - reach - 1) * self.up // self.down
        if ready <= self.done:
            return samples[:0]
        places = torch.arange(self.done, ready)
        found = resample_places(self.kept, places, filters, self.up, self.down, self.dropped)
        self.done = ready
        unneeded = min(ready * self.down // self.up - self.dropped, len(self.kept))
        self.kept, self.dropped = self.kept[unneeded:], self.dropped + unneeded
        return found


class LogMelStream:
    """`log_mel`, part by part.

    Args:
        rate, mels, window, hop: as those of `log_mel`.
    """

    def __init__(self, *, rate: int, mels: int, window: int, hop: int) -> None:
        self.settings = {"rate": rate, "mels": mels, "window": window, "hop": hop}
        self.window, self.hop = window, hop
        self.kept = torch.zeros((window + 1) // 2)  # the first window begins before the sound
        self.heard = self.done = 0

    def push(self, samples: Tensor, *, last: bool = False) -> Tensor:
        """(frames, mels): the frames that more samples (n,) complete; after the last ones, all that are left."""
        self.heard += len(samples)
        self.kept = torch.cat([self.kept, samples, torch.zeros(self.window if last else 0)])
        found = log_mel_frames(self.kept, **self.settings)
        if last:
            found = found[: 1 + self.heard // self.hop - self.done]
        self.done += len(found)
        self.kept = self.kept[len(found) * self.hop :]
        return found
