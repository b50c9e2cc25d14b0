"""A recording that is still being read, as the frames that a model sees."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.fields.audio import Audio
from saccade.kernels.sound_streams import LogMelStream, ResampleStream


class AudioStream:
    """The features of the field `audio`, frame by frame, as soon as their samples have been heard.

    Args:
        field: with `normalise="corpus"`, since the statistics of a recording are only known at its end.
        rate: samples per second of what is heard.
    """

    def __init__(self, field: Audio, rate: int) -> None:
        if field.normalise != "corpus":
            raise ValueError(
                f"a model with normalise={field.normalise!r} needs the whole recording first: train one with "
                "normalise='corpus' to stream."
            )
        sound = field.sound
        self.field = field
        self._samples = ResampleStream(rate, sound.rate)
        self._bands = LogMelStream(rate=sound.rate, mels=sound.mels, window=sound.window, hop=sound.hop)

    def push(self, samples: Tensor, *, last: bool = False) -> Tensor:
        """(frames, dim): the frames completed by more samples (n,); after the last samples, all that remain."""
        bands = self._bands.push(self._samples.push(samples, last=last), last=last)
        return self.field.corpus.normalise(self.field.sound.of_bands(bands))

    def heard_until(self, frames: int) -> float:
        """How many seconds of the recording these frames depend on."""
        sound = self.field.sound
        return max(0, (frames - 1) * sound.hop + sound.window // 2) / sound.rate if frames else 0.0


def no_samples() -> Tensor:
    """Nothing more to hear."""
    return torch.zeros(0)
