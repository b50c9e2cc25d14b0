"""Recordings on an axis: frames over time, with their spectrogram and, if wanted, the sound itself."""

import math
from dataclasses import dataclass
from typing import Any

from saccade.interpretation.explorer.media import PNG, spectrogram_png, wav


@dataclass(frozen=True, kw_only=True)
class SoundAxis:
    """The frames of a recording, in order, each covering the same length of time.

    Args:
        png: the spectrogram as the contents of a PNG file, low frequencies at the bottom. It is stretched over all
            frames, so it may have a finer resolution, as with an encoder that reads every fourth frame.
        frames: how many rows or columns the map has.
        seconds: how long the recording is.
        wav: the contents of a WAV file, for the page's play button. It is part of the page: keep it small.
    """

    png: bytes
    frames: int
    seconds: float
    wav: bytes | None = None

    def __post_init__(self) -> None:
        if not self.png.startswith(PNG):
            raise ValueError(f"png must be the contents of a PNG file, got bytes that start with {self.png[:8]!r}.")
        if self.frames < 1:
            raise ValueError(f"frames must be at least 1, got {self.frames}.")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"seconds must be a positive number, got {self.seconds}.")
        if self.wav is not None and not (self.wav.startswith(b"RIFF") and self.wav[8:12] == b"WAVE"):
            raise ValueError(f"wav must be the contents of a WAV file, got bytes that start with {self.wav[:12]!r}.")

    @classmethod
    def from_features(
        cls,
        features: Any,
        *,
        seconds: float,
        frames: int | None = None,
        samples: Any = None,
        rate: int | None = None,
    ) -> "SoundAxis":
        """Draws the spectrogram from log-mel features and encodes the samples.

        Shapes:
            features (mels, feature frames), samples (samples,): tensors, arrays or lists.

        Args:
            features: logarithmic energies, on any scale.
            seconds: how long the recording is.
            frames: how many frames the attention sees; one per feature frame by default.
            samples: the sound, one channel between -1 and 1; without it the page has no play button.
            rate: samples per second.
        """
        if (samples is None) != (rate is None):
            raise ValueError("samples and rate belong together: give both or neither.")
        png = spectrogram_png(features)
        sound = None if samples is None or rate is None else wav(samples, rate)
        return cls(png=png, frames=len(features[0]) if frames is None else frames, seconds=seconds, wav=sound)

    def __len__(self) -> int:
        return self.frames

    @property
    def names(self) -> list[str]:
        """When each frame begins, such as `0.25 s`."""
        return moments(self.seconds, self.frames)


def moments(seconds: float, frames: int) -> list[str]:
    """When each frame of a recording begins, such as `0.25 s`."""
    digits = 2 if seconds >= 0.01 * frames else 3
    return [f"{seconds * frame / frames:.{digits}f} s" for frame in range(frames)]
