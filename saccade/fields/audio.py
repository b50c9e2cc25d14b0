"""Recordings."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.artifacts import JsonObject, read_json
from saccade.checks import check_count
from saccade.data.cell import Cell, shown, text_of
from saccade.data.errors import DataError
from saccade.data.marks import digest
from saccade.data.recordings import FASTEST, SLOWEST, RecordingError, as_wav, read_header, read_samples
from saccade.fields.base import Field, Padded, fields
from saccade.fields.cache import Cache
from saccade.interpretation.explorer import SoundAxis
from saccade.interpretation.explorer.sound import moments
from saccade.kernels.log_mel import fft_size, log_mel, mel_filters, resample

FILE = "audio.json"
SAMPLED = 500
"""Recordings from which means and deviations are estimated."""
CACHED = 256 << 20
"""Bytes of features that stay in memory."""
PLAYED = 30.0
"""Seconds up to which the explorer's page holds the sound itself."""
MOST_WEIGHTS = 2**23
"""Of the filters that make bands of a spectrum: a hundred times what speech needs."""
MARGIN = 0.1
"""Seconds that resampling may look ahead."""
DECIBEL = math.log(10.0) / 10.0  # of power, as a natural logarithm

Recording = dict[str, Any]
"""`name`, as the user wrote it; `path`, or the file's contents as `bytes`; how many `samples` it has at what `rate`."""


@fields.register("audio")
class Audio(Field):
    """A recording, read as frames of log-mel features with mean 0 and deviation 1.

    A cell is the path of a WAV, FLAC or OGG file. In memory it can also be the bytes of such a file, an array of
    samples at `rate`, or a dictionary as in Hugging Face datasets: `{array, sampling_rate}` or `{bytes, path}`.
    Recordings may have any sample rate and any number of channels; they are resampled and mixed down to one. WAV needs
    no library, FLAC and OGG need soundfile.

    Args:
        rate: samples per second that the features are computed from.
        mels: the number of frequency bands of a frame.
        window: the length of a frame in seconds.
        hop: the time from one frame to the next, in seconds.
        max_seconds: training leaves out longer recordings.
        gain: training makes recordings louder or quieter by up to this many decibels.
        time_masks, time_width: training blanks `time_masks` stretches of up to `time_width` frames in each recording.
        mel_masks, mel_width: training blanks `mel_masks` groups of up to `mel_width` neighbouring bands.

    Reference:
        Masks: Park et al. (2019), SpecAugment, arXiv:1904.08779.
    """

    decodes = True
    suffixes = (".wav", ".flac", ".ogg")
    unit = "frames"

    def __init__(
        self,
        *,
        rate: int = 8000,
        mels: int = 40,
        window: float = 0.025,
        hop: float = 0.010,
        max_seconds: float = 30.0,
        gain: float = 0.0,
        time_masks: int = 0,
        time_width: int = 20,
        mel_masks: int = 0,
        mel_width: int = 8,
    ) -> None:
        if not SLOWEST <= rate <= FASTEST:
            raise ValueError(f"rate must be from {SLOWEST:,} to {FASTEST:,} samples per second, got {rate}.")
        check_count("mels", mels)
        if not 1 / rate <= hop <= window <= 1.0:
            raise ValueError(f"hop and window must be in seconds, with hop <= window <= 1, got {hop} and {window}.")
        if not max_seconds > 0.0:
            raise ValueError(f"max_seconds must be positive, got {max_seconds}.")
        if not 0.0 <= gain <= 60.0:
            raise ValueError(f"gain must be from 0 to 60 decibels, got {gain}.")
        for name, count in (("time_masks", time_masks), ("mel_masks", mel_masks)):
            if count < 0:
                raise ValueError(f"{name} must be 0 or more, got {count}.")
        check_count("time_width", time_width)
        check_count("mel_width", mel_width)
        self.rate, self.mels = rate, mels
        self.window, self.hop = round(window * rate), round(hop * rate)
        if mels * fft_size(self.window) > MOST_WEIGHTS:
            raise ValueError(f"mels={mels} is too many for windows of {self.window} samples: use shorter windows.")
        if mels > fft_size(self.window) // 2 or not mel_filters(rate, fft_size(self.window), mels).sum(dim=1).all():
            raise ValueError(f"mels={mels} is too many for windows of {self.window} samples: some bands are empty.")
        self.max_seconds, self.gain = max_seconds, gain
        self.masks = ((0, time_masks, time_width), (1, mel_masks, mel_width))
        self.mean, self.deviation = torch.zeros(mels), torch.ones(mels)
        self._cache = Cache(CACHED)

    @property
    def longest(self) -> int:
        return 1 + int(self.max_seconds * self.rate) // self.hop

    def read(self, raw: Any, cell: Cell) -> Recording:
        name = _name(raw, cell)
        try:
            source = self._source(raw, cell)
            header = read_header(source)
        except RecordingError as error:
            raise cell.bad(f"the {cell.role} {name!r} cannot be used: {error.problem}", error.fix) from None
        path, data = (source, None) if isinstance(source, str) else ("", source)
        return {"name": name, "path": path, "bytes": data, "samples": header.samples, "rate": header.rate}

    def _source(self, raw: Any, cell: Cell) -> str | bytes:
        """The path of a recording, or the contents of its file."""
        if isinstance(raw, Mapping):
            if raw.get("array") is not None:
                return as_wav(raw["array"], raw.get("sampling_rate", self.rate))
            return self._source(raw["path"] if raw.get("bytes") is None else raw["bytes"], cell)
        if isinstance(raw, bytes | bytearray | memoryview):
            return bytes(raw)
        if isinstance(raw, str | os.PathLike):
            return os.path.abspath(cell.folder / raw)
        return as_wav(raw.detach().cpu() if isinstance(raw, Tensor) else raw, self.rate)

    def fit(self, values: Iterable[Recording]) -> None:
        """Means and deviations of the bands, from a random sample of the recordings."""
        chosen: list[Recording] = []
        draws = random.Random(0)
        for number, value in enumerate(value for value in values if self.left_out(self.encode(value)) is None):
            place = number if number < SAMPLED else draws.randrange(number + 1)
            if place < SAMPLED:
                chosen[place : place + 1] = [value]
        count, total, squares = 0, torch.zeros(self.mels).double(), torch.zeros(self.mels).double()
        for value in chosen:
            features = self._log_mel(self.encode(value)).double()
            count, total, squares = count + len(features), total + features.sum(0), squares + features.square().sum(0)
        if count:
            mean = total / count
            deviation = (squares / count - mean.square()).clamp(min=0.0).sqrt()
            self.mean = mean.float()
            self.deviation = torch.where(deviation > 1e-4, deviation, 1.0).float()  # a band that is always silent
        self._cache = Cache(CACHED)

    def sizes(self) -> dict[str, int]:
        return {"dim": self.mels}

    def save(self, folder: Path) -> None:
        learned = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        (folder / FILE).write_text(json.dumps(learned), encoding="utf-8")

    def load(self, folder: Path) -> None:
        found = JsonObject(read_json(folder / FILE), str(folder / FILE))
        self.mean = torch.tensor(found.take_list("mean", float, length=self.mels, least=-1e6, most=1e6))
        self.deviation = torch.tensor(found.take_list("deviation", float, length=self.mels, least=1e-6, most=1e6))
        self._cache = Cache(CACHED)

    def encode(self, value: Recording) -> dict[str, Any]:
        samples = -(-value["samples"] * self.rate // value["rate"])
        return {"path": value["path"], "bytes": value["bytes"], "frames": 1 + samples // self.hop}

    def size(self, encoded: Mapping[str, Any]) -> int:
        return int(encoded["frames"])

    def left_out(self, encoded: Mapping[str, Any]) -> str | None:
        return f"longer than max_seconds={self.max_seconds:g}" if encoded["frames"] > self.longest else None

    def clip(self, encoded: dict[str, Any], most: int) -> dict[str, Any]:
        return {**encoded, "frames": min(encoded["frames"], most)}

    def pad(self, encoded: Sequence[Mapping[str, Any]], generator: torch.Generator | None = None) -> Padded:
        features = [self._features(each) for each in encoded]
        if generator is not None:
            features = [self._augmented(each, generator) for each in features]
        lengths = torch.tensor([len(each) for each in features])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        return {"values": pad_sequence(features, batch_first=True), "mask": mask}

    def axis(self, value: Recording, length: int | None = None) -> SoundAxis:
        encoded = self.encode(value)
        samples = self._samples(encoded)
        seconds = value["samples"] / value["rate"]
        return SoundAxis.from_features(
            self._spectrum(samples).T,
            seconds=seconds,
            frames=length or encoded["frames"],
            samples=samples if seconds <= PLAYED else None,
            rate=self.rate if seconds <= PLAYED else None,
        )

    def position_names(self, value: Recording, length: int | None = None) -> list[str]:
        return moments(value["samples"] / value["rate"], length or self.encode(value)["frames"])

    def show(self, value: Recording) -> str:
        return str(value["name"])

    def learned(self) -> str:
        return f"{self.mels} mel bands at {self.rate / 1000:g} kHz"

    def portable(self) -> dict[str, Any]:
        return {
            "kind": "audio",
            **{name: getattr(self, name) for name in ("rate", "window", "hop")},
            "filters": mel_filters(self.rate, fft_size(self.window), self.mels).tolist(),
            "mean": self.mean.tolist(),
            "deviation": self.deviation.tolist(),
        }

    def stand_ins(self, count: int, length: int) -> Padded:
        frames = 8 * length  # a model may join several into one
        lengths = torch.tensor([frames - min(number, 2) for number in range(count)])
        mask = torch.arange(frames) < lengths[:, None]
        return {"values": torch.randn(count, frames, self.mels) * mask.unsqueeze(-1), "mask": mask}

    def _samples(self, encoded: Mapping[str, Any], frames: int | None = None) -> Tensor:
        """The sound at the field's rate, as far as the frames reach."""
        source = encoded["path"] if encoded["bytes"] is None else encoded["bytes"]
        try:
            seconds = None if frames is None else (frames * self.hop + self.window) / self.rate + MARGIN
            samples, rate = read_samples(source, seconds)
        except RecordingError as error:
            name = encoded["path"] or "in memory"
            raise DataError(f"The recording {name} cannot be used: {error.problem}. {error.fix}") from None
        return resample(torch.from_numpy(samples), rate, self.rate)

    def _spectrum(self, samples: Tensor) -> Tensor:
        return log_mel(samples, rate=self.rate, mels=self.mels, window=self.window, hop=self.hop)

    def _log_mel(self, encoded: Mapping[str, Any]) -> Tensor:
        """(frames, mels), as many frames as the value has."""
        frames = encoded["frames"]
        found = self._spectrum(self._samples(encoded, frames))[:frames]
        if len(found) < frames:
            problem = f"has {len(found)} frames, and had {frames} when the data was read"
            raise DataError(f"The recording {encoded['path']} {problem}. Restore it, or start again.")
        return found

    def _features(self, encoded: Mapping[str, Any]) -> Tensor:
        """The same with mean 0 and deviation 1; from the cache if possible."""
        if encoded["bytes"] is None:
            try:
                stat = os.stat(encoded["path"])
            except OSError:
                stat = None  # `_log_mel` says what is wrong with it
            key: Hashable = (encoded["path"], encoded["frames"], stat and (stat.st_mtime_ns, stat.st_size))
        else:
            key = (digest(encoded["bytes"]), encoded["frames"])
        found = self._cache.get(key)
        if found is None:
            found = (self._log_mel(encoded) - self.mean) / self.deviation
            self._cache.put(key, found)
        return found

    def _augmented(self, features: Tensor, generator: torch.Generator) -> Tensor:
        if self.gain:  # a factor of the sound is a summand of the logarithm
            loudness = self.gain * (2.0 * torch.rand((), generator=generator) - 1.0)
            features = features + loudness * DECIBEL / self.deviation
        for dim, count, width in self.masks:
            for _ in range(count):
                size = int(torch.randint(min(width, features.shape[dim] // 2) + 1, (), generator=generator))
                start = int(torch.randint(features.shape[dim] - size + 1, (), generator=generator))
                place = torch.arange(features.shape[dim])
                blank = (place >= start) & (place < start + size)
                features = features.masked_fill(blank[:, None] if dim == 0 else blank, 0.0)
        return features


def _name(raw: Any, cell: Cell) -> str:
    """What the user calls a recording."""
    path = raw.get("path") if isinstance(raw, Mapping) else raw
    if isinstance(path, str | os.PathLike):
        return text_of(os.fspath(path), cell)
    if isinstance(raw, Mapping) and raw.get("array") is None and raw.get("bytes") is None:
        fix = "Give array and sampling_rate, bytes, or path."
        raise cell.bad(f"the {cell.role} is a dictionary without a recording (keys: {sorted(map(str, raw))})", fix)
    if isinstance(raw, Mapping | bytes | bytearray | memoryview) or hasattr(raw, "__array__"):
        return f"recording {cell.line}"
    if raw is None:
        raise cell.bad(f"the {cell.role} is empty", "Give the path of a recording.")
    raise cell.bad(f"the {cell.role} is not a recording but {shown(raw)}", "Give the path of a WAV, FLAC or OGG file.")
