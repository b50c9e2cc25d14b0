"""Transcribing a recording while it is still being read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.data.recordings import RecordingError
from saccade.data.sound_blocks import Blocks
from saccade.evaluation.latency import latency
from saccade.fields import Audio
from saccade.fields.audio_stream import AudioStream, no_samples
from saccade.models.online import OnlineReader, WrittenToken, is_online
from saccade.tasks.base import Task
from saccade.tasks.generation.options import SearchOptions
from saccade.tasks.generation.streaming import one_by_one
from saccade.tasks.generation.task import Generation
from saccade.tasks.generation.unseen import most_read
from saccade.tasks.generation.writer import writer
from saccade.tasks.options import Options

Emit = Callable[[dict[str, Any]], None]


class Heard(NamedTuple):
    """What was written, and when.

    Args:
        text: the transcript.
        seconds: the length of the recording, as far as it was read.
        read: how much of it had been read when each token was written, in seconds; without the end.
        proportion: the same as a share of the recording, averaged over tokens; 1 if all of it was read first.
        lagging: how many seconds the tokens lag behind an even pace (average lagging).
        finished: whether the model ended the text itself.
    """

    text: str
    seconds: float
    read: list[float]
    proportion: float
    lagging: float
    finished: bool


def can_listen(task: Task, model: nn.Module) -> bool:
    """Whether a model can write before it has heard the whole recording."""
    audio = isinstance(task, Generation) and isinstance(task.source, Audio) and task.source.normalise == "corpus"
    return audio and is_online(model)


def listen(task: Task, model: nn.Module, sound: Blocks, options: Options, emit: Emit) -> Heard:
    """Transcribes a recording while it is heard, by greedy search.

    Args:
        task: with recordings as its source.
        model: in evaluation mode, for which `can_listen`.
        sound: blocks of samples, which are taken one by one.
        options: only `max_length`; other searches need the whole recording.
        emit: receives `{"text": ..., "read": ..., "looked_at": ...}` for each token as it is written: what it adds to
            the text, how many seconds of the recording had been read, and up to which second the model looked.
    """
    assert isinstance(task, Generation)
    assert isinstance(options, SearchOptions)
    _check(options)
    assert isinstance(task.source, Audio)
    stream, reader = AudioStream(task.source, sound.rate), OnlineReader(writer(model))
    frames = samples = 0
    limit = most_read(model, task.source.longest)
    shown, read, needed = "", list[float](), list[Tensor]()

    def write(found: Iterable[WrittenToken]) -> None:
        nonlocal shown
        for token in found:
            if token.token == reader.eos:
                continue
            read.append(samples / sound.rate)
            needed.append(token.weights)
            text = task.target.tokeniser.decode([each.token for each in reader.written[: len(read)]])
            looked = int(token.weights.nonzero().max()) + 1 if bool(token.weights.any()) else reader.positions
            until = min(stream.heard_until(looked * reader.stride), read[-1])
            emit({"text": text.removeprefix(shown), "read": round(read[-1], 3), "looked_at": round(until, 3)})
            shown = text

    def most() -> int:
        longest = writer(model).longest_target()
        found = options.max_length or int(task.most_tokens(torch.tensor([frames]))[0])
        return found if longest is None else min(found, longest)

    for block in sound.blocks:
        samples += len(block)
        new = stream.push(torch.from_numpy(block))[: limit - frames]
        frames += len(new)
        write(reader.push(new, most=most()))
        if reader.ended or frames == limit:
            break
    if not samples:
        raise RecordingError("it contains no sound", "Record it again.")
    if not reader.ended:
        new = stream.push(no_samples(), last=True)[: limit - frames]
        frames += len(new)
        write(reader.push(new, last=True, most=most()))
    finished = bool(reader.written) and reader.written[-1].token == reader.eos
    return _heard(shown, samples / sound.rate, read, needed, reader, finished)


def _heard(
    text: str, seconds: float, read: list[float], needed: list[Tensor], reader: OnlineReader, finished: bool
) -> Heard:
    if not needed or not reader.positions:
        return Heard(text, seconds, read, 1.0, seconds, finished)
    rows = torch.stack([nn.functional.pad(row, (0, reader.positions - len(row))) for row in needed])
    found = latency([rows])
    return Heard(text, seconds, read, found.proportion, found.lagging * seconds / reader.positions, finished)


def _check(options: SearchOptions) -> None:
    one_by_one(options)
    if options.sample:
        raise ValueError("sample cannot be combined with a recording that is still being read.")
    for name, value in options.wishes().items():
        if name not in ("length_penalty", "coverage_penalty"):
            raise ValueError(f"{name}={value!r:.40} cannot be combined with a recording that is still being read.")
