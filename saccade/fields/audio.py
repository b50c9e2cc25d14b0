"""Recordings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.artifacts import ArtifactError, JsonObject, read_json
from saccade.checks import check_count
from saccade.data.cell import Cell
from saccade.data.errors import DataError
from saccade.data.recordings import RecordingError, read_header, read_samples
from saccade.fields.audio_cells import name_of, source_of
from saccade.fields.audio_features import FeatureKind, SoundFeatures, masked
from saccade.fields.audio_statistics import (
    MOST_SPEAKERS,
    SAMPLED,
    Reservoir,
    SpeakerTemplate,
    Statistics,
    fit_speakers,
)
from saccade.fields.base import Field, Padded, fields
from saccade.fields.cache import TensorCache, content_key
from saccade.interpretation.explorer import SoundAxis
from saccade.interpretation.explorer.sound import moments
from saccade.kernels.log_mel import fft_size, mel_filters
from saccade.kernels.resample import resample

FILE = "audio.json"
CACHED = 256 << 20
"""Bytes of features that stay in memory."""
PLAYED = 30.0
"""The longest sound, in seconds, that the explorer's page embeds."""
MARGIN = 0.1
"""Seconds that resampling may look ahead."""

Recording = dict[str, Any]
"""`name`, as the user wrote it; `path`, or the file's contents as `bytes`; how many `samples` it has at what `rate`;
and the `speaker`, if that counts."""


@fields.register("audio")
class Audio(Field):
    """A recording, read as frames of features with mean 0 and standard deviation 1.

    A cell is the path of a WAV, FLAC or OGG file. In memory it can also be the bytes of such a file, an array of
    samples at `rate`, or a dictionary as in Hugging Face datasets: `{array, sampling_rate}` or `{bytes, path}`.
    Recordings may have any sample rate and any number of channels; they are resampled and mixed down to one. WAV needs
    no library, FLAC and OGG need soundfile: pip install "saccade[audio]".

    Args:
        rate: samples per second that the features are computed from.
        features: "log_mel", the logarithm of the power in each mel band, or "mfcc", cepstral coefficients.
        mels: the number of frequency bands of a frame.
        coefficients: the number of cepstral coefficients of a frame, with features="mfcc".
        window: the length of a frame in seconds.
        hop: the time from one frame to the next, in seconds.
        max_seconds: training leaves out longer recordings.
        normalise: what is scaled to mean 0 and standard deviation 1: the whole "corpus", the recordings of each
            "speaker", or each "recording". For a new speaker, each recording is scaled on its own.
        speaker: where a path names the speaker: {} stands for the speaker and * for anything, as in {}/* (the folder)
            or *_{}_* (a part of the name, without its suffix). In memory, a dictionary may have a `speaker`.
        speeds: training plays each recording at one of these speeds, such as [0.9, 1.0, 1.1], which also changes its
            pitch.
        gain: training makes recordings louder or quieter by up to this many decibels; not with normalise="recording",
            which makes them equally loud again.
        time_masks, time_width: training blanks `time_masks` stretches of up to `time_width` frames in each recording.
        mel_masks, mel_width: training blanks `mel_masks` groups of up to `mel_width` neighbouring bands (coefficients,
            with features="mfcc").

    Reference:
        Masks: Park et al. (2019), SpecAugment, arXiv:1904.08779. Speeds: Ko et al. (2015), Audio augmentation for
        speech recognition.
    """

    holds = "file"
    decodes = True
    suffixes = (".wav", ".flac", ".ogg")
    unit = "frames"

    def __init__(
        self,
        *,
        rate: int = 8000,
        features: FeatureKind = "log_mel",
        mels: int = 40,
        coefficients: int = 13,
        window: float = 0.025,
        hop: float = 0.010,
        max_seconds: float = 30.0,
        normalise: Literal["corpus", "speaker", "recording"] = "corpus",
        speaker: str | None = None,
        speeds: Sequence[float] = (1.0,),
        gain: float = 0.0,
        time_masks: int = 0,
        time_width: int = 20,
        mel_masks: int = 0,
        mel_width: int = 8,
    ) -> None:
        self.sound = SoundFeatures(
            rate=rate, kind=features, mels=mels, coefficients=coefficients, window=window, hop=hop
        )
        if not max_seconds > 0.0:
            raise ValueError(f"max_seconds must be positive, got {max_seconds}.")
        if normalise not in ("corpus", "speaker", "recording"):
            raise ValueError(f"normalise must be 'corpus', 'speaker' or 'recording', got {normalise!r}.")
        if speaker is not None and normalise != "speaker":
            raise ValueError(f"speaker={speaker!r:.60} is for normalise='speaker', got normalise={normalise!r}.")
        if not speeds or not all(0.5 <= speed <= 2.0 for speed in speeds):
            raise ValueError(f"speeds must be one or more numbers from 0.5 to 2, got {list(speeds)!r:.60}.")
        if not 0.0 <= gain <= 60.0:
            raise ValueError(f"gain must be from 0 to 60 decibels, got {gain}.")
        if gain and normalise == "recording":
            raise ValueError(
                f"gain={gain} has no effect with normalise='recording', which makes all recordings equally loud."
            )
        for name, count in (("time_masks", time_masks), ("mel_masks", mel_masks)):
            if count < 0:
                raise ValueError(f"{name} must be 0 or more, got {count}.")
        check_count("time_width", time_width)
        check_count("mel_width", mel_width)
        self.rate, self.hop = rate, self.sound.hop
        self.max_seconds, self.gain = max_seconds, gain
        self.speeds = [round(100 * speed) for speed in speeds]  # per cent
        self.masks = ((0, time_masks, time_width), (1, mel_masks, mel_width))
        self.normalise = normalise
        self._speaker = None if speaker is None else SpeakerTemplate(speaker)
        self.corpus = Statistics.neutral(self.sound.dim)
        self.speakers: dict[str, Statistics] = {}
        self._cache = TensorCache(CACHED)

    @property
    def longest(self) -> int:
        return 1 + int(self.max_seconds * self.rate) * 100 // (min(self.speeds) * self.hop)

    def read(self, raw: Any, cell: Cell) -> Recording:
        name = name_of(raw, cell)
        try:
            source = source_of(raw, cell, self.rate)
            header = read_header(source)
        except RecordingError as error:
            raise cell.bad(f"the {cell.role} {name!r} cannot be used: {error.problem}", error.fix) from None
        path, data = (source, None) if isinstance(source, str) else ("", source)
        value = {"name": name, "path": path, "bytes": data, "samples": header.samples, "rate": header.rate}
        return {**value, "speaker": self._speaker_of(raw, name)} if self.normalise == "speaker" else value

    def _speaker_of(self, raw: Any, name: str) -> str:
        """The speaker; empty if unknown."""
        if isinstance(raw, Mapping) and raw.get("speaker") is not None:
            return str(raw["speaker"])
        return "" if self._speaker is None else self._speaker.find(name)

    def identity(self, value: Recording) -> Recording:
        return value if value["path"] else {**value, "name": ""}  # which counts the values in memory

    def fit(self, values: Iterable[Recording]) -> None:
        """Means and deviations of the features, from a random sample of the recordings."""
        kept = (value for value in values if self.left_out(self.encode(value)) is None)
        if self.normalise == "corpus":
            sample = Reservoir(SAMPLED)
            for value in kept:
                sample.add(value)
            self.corpus = Statistics.of((self._compute(self.encode(value)) for value in sample.kept), self.sound.dim)
        elif self.normalise == "speaker":
            self.speakers = fit_speakers(
                kept,
                lambda value: str(value["speaker"]),
                lambda value: self._compute(self.encode(value)),
                self.sound.dim,
            )
        self._cache = TensorCache(CACHED)

    def sizes(self) -> dict[str, int]:
        return {"dim": self.sound.dim}

    def save(self, folder: Path) -> None:
        learned = self.corpus.as_json()
        if self.speakers:
            learned["speakers"] = {name: found.as_json() for name, found in self.speakers.items()}
        (folder / FILE).write_text(json.dumps(learned), encoding="utf-8")

    def load(self, folder: Path) -> None:
        where = str(folder / FILE)
        content = read_json(folder / FILE)
        self.corpus = Statistics.read(JsonObject(content, where), self.sound.dim)
        speakers = content.get("speakers", {})
        if not isinstance(speakers, dict) or len(speakers) > MOST_SPEAKERS:
            raise ArtifactError(f"{where} is damaged: its speakers must be up to {MOST_SPEAKERS:,} objects by name.")
        self.speakers = {
            name: Statistics.read(JsonObject(each, where), self.sound.dim) for name, each in speakers.items()
        }
        self._cache = TensorCache(CACHED)

    def encode(self, value: Recording) -> dict[str, Any]:
        samples = -(-value["samples"] * self.rate // value["rate"])
        encoded = {"path": value["path"], "bytes": value["bytes"], "frames": 1 + samples // self.hop}
        return {**encoded, "speaker": value["speaker"]} if self.normalise == "speaker" else encoded

    def size(self, encoded: Mapping[str, Any]) -> int:
        return int(encoded["frames"])

    def left_out(self, encoded: Mapping[str, Any]) -> str | None:
        longest = 1 + int(self.max_seconds * self.rate) // self.hop
        return f"longer than max_seconds={self.max_seconds:g}" if encoded["frames"] > longest else None

    def clip(self, encoded: dict[str, Any], most: int) -> dict[str, Any]:
        return {**encoded, "frames": min(encoded["frames"], most)}

    def pad(self, encoded: Sequence[Mapping[str, Any]], generator: torch.Generator | None = None) -> Padded:
        features = [self._features(each, generator) for each in encoded]
        lengths = torch.tensor([len(each) for each in features])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        return {"values": pad_sequence(features, batch_first=True), "mask": mask}

    def axis(self, value: Recording, length: int | None = None) -> SoundAxis:
        encoded = self.encode(value)
        samples = self._samples(encoded)
        seconds = value["samples"] / value["rate"]
        return SoundAxis.from_features(
            self.sound.bands(samples).T,
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
        speakers = f", {len(self.speakers):,} speakers" if self.speakers else ""
        return f"{self.sound.describe()}{speakers}"

    def portable(self) -> dict[str, Any]:
        sound = self.sound
        if sound.coefficients is not None or self.normalise != "corpus":
            raise ValueError("outside Saccade, the field audio is only read with features=log_mel and normalise=corpus")
        return {
            "kind": "audio",
            **{name: getattr(sound, name) for name in ("rate", "window", "hop")},
            "filters": mel_filters(sound.rate, fft_size(sound.window), sound.mels).tolist(),
            "mean": self.corpus.mean.tolist(),
            "deviation": self.corpus.deviation.tolist(),
        }

    def stand_ins(self, count: int, length: int) -> Padded:
        frames = 8 * length  # a model may join several into one
        lengths = torch.tensor([frames - min(number, 2) for number in range(count)])
        mask = torch.arange(frames) < lengths[:, None]
        return {"values": torch.randn(count, frames, self.sound.dim) * mask.unsqueeze(-1), "mask": mask}

    def statistics(self, features: Tensor, speaker: str = "") -> Statistics:
        """The statistics by which features (frames, dim) of a speaker are normalised."""
        if self.normalise == "corpus":
            return self.corpus
        return self.speakers.get(speaker) or Statistics.of([features], self.sound.dim)

    def _samples(self, encoded: Mapping[str, Any], frames: int | None = None) -> Tensor:
        """The sound at the field's rate, cut to the length of the frames."""
        source = encoded["path"] if encoded["bytes"] is None else encoded["bytes"]
        try:
            seconds = None if frames is None else (frames * self.hop + self.sound.window) / self.rate + MARGIN
            samples, rate = read_samples(source, seconds)
        except RecordingError as error:
            name = encoded["path"] or "in memory"
            raise DataError(f"The recording {name} cannot be used: {error.problem}. {error.fix}") from None
        return resample(torch.from_numpy(samples), rate, self.rate)

    def _compute(self, encoded: Mapping[str, Any], speed: int = 100) -> Tensor:
        """(frames, dim), as many frames as the value has, at a speed in per cent."""
        frames = encoded["frames"]
        samples = self._samples(encoded, frames)
        if speed != 100:
            return self.sound.of(resample(samples[: frames * self.hop], speed, 100))
        found = self.sound.of(samples)[:frames]
        if len(found) < frames:
            problem = f"has {len(found)} frames, and had {frames} when the data was read"
            raise DataError(f"The recording {encoded['path']} {problem}. Restore it, or start again.")
        return found

    def _features(self, encoded: Mapping[str, Any], generator: torch.Generator | None) -> Tensor:
        """The same, normalised, from the cache if possible; augmented if there is a generator."""
        speed = 100
        if generator is not None and self.speeds != [100]:
            speed = self.speeds[int(torch.randint(len(self.speeds), (), generator=generator))]
        source = encoded["path"] if encoded["bytes"] is None else encoded["bytes"]
        key = (content_key(source), encoded["frames"], speed)
        found = self._cache.get(key)
        if found is None:
            found = self._compute(encoded, speed)
            self._cache.put(key, found)
        if generator is not None and self.gain:
            found = found + self.sound.gained(self.gain * (2.0 * torch.rand((), generator=generator) - 1.0))
        found = self.statistics(found, encoded.get("speaker", "")).normalise(found)
        return found if generator is None else masked(found, self.masks, generator)
