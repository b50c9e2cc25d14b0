"""Streaming answers: `saccade predict --stream`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from saccade.data.recordings import RecordingError
    from saccade.data.sound_blocks import Blocks
    from saccade.runs import Run
    from saccade.tasks.generation.listening import Emit, Heard

LONGEST = 3600
"""The longest recording, in seconds, for a model that must hear all of it first."""

BLOCK = 0.1
"""Seconds of a recording that are read at a time."""
PIPE = "-"


def predict_streamed(run: Run, inputs: list[str], file: TextIO, *, as_json: bool, **options: Any) -> int:
    """Writes each text as it is found, and prints the latency; returns the number of texts.

    Args:
        run: of a generation task.
        inputs: recordings, folders of recordings, or - for a WAV file on standard input.
        file: where the texts go, one per line.
        as_json: whether each part is an object on a line of its own.
        options: those of a prediction.
    """
    from saccade.data.recordings import RecordingError
    from saccade.tasks.generation.listening import can_listen, listen

    task = run.task
    suffixes = next(iter(task.inputs.values())).suffixes
    if not task.writes_texts or not suffixes:
        raise ValueError("--stream transcribes recordings: the run's task must be generation from audio.")
    asked = task.options.of(options)
    online = can_listen(task, run.model)
    if not online:
        print("This model reads the whole recording before it writes; speech/online models do not.", file=sys.stderr)
    count = 0
    for name, sound in _sounds(inputs or [PIPE], suffixes):
        count += 1

        def emit(event: dict[str, Any], name: str = name) -> None:
            shown = json.dumps({"input": name, **event}, ensure_ascii=False) + "\n" if as_json else event["text"]
            print(shown, end="", file=file, flush=True)

        started = time.process_time()
        try:
            found = listen(task, run.model, sound, asked, emit) if online else _read_first(run, sound, options, emit)
        except RecordingError as error:
            raise _named(name, error) from None
        spent = time.process_time() - started
        if as_json:
            timing = {"seconds": round(found.seconds, 3), "proportion": round(found.proportion, 4)}
            ended = {"input": name, "answer": found.text, **timing, "lagging": round(found.lagging, 3)}
            print(json.dumps({**ended, "finished": found.finished}, ensure_ascii=False), file=file, flush=True)
            continue
        print(file=file, flush=True)
        first = f"first letters after {found.read[0]:.2f} s, " if found.read else ""
        pace = f"{found.proportion:.0%} read on average, {found.lagging:.2f} s behind an even pace"
        print(f"{name}: {found.seconds:.2f} s heard, {first}{pace}; {spent:.2f} s of computation.", file=sys.stderr)
    return count


def _sounds(inputs: list[str], suffixes: tuple[str, ...]) -> Iterator[tuple[str, Blocks]]:
    from saccade.data.recordings import RecordingError
    from saccade.data.sound_blocks import pipe_blocks, read_blocks

    for given in inputs:
        place = Path(given)
        files = [given]
        if given != PIPE and place.is_dir():
            files = [str(each) for each in sorted(place.rglob("*")) if each.suffix.lower() in suffixes]
            if not files:
                raise ValueError(f"{given} contains no file that ends in {', '.join(suffixes)}.")
        for name in files:
            try:
                yield name, pipe_blocks(sys.stdin.buffer, BLOCK) if name == PIPE else read_blocks(name, BLOCK)
            except RecordingError as error:
                raise _named(name, error) from None


def _named(name: str, error: RecordingError) -> ValueError:
    """What is wrong with a recording, with its name."""
    return ValueError(f"{name}: {error.problem}. {error.fix.removesuffix('.')}.")


def _read_first(run: Run, sound: Blocks, options: dict[str, Any], emit: Emit) -> Heard:
    """For a model that needs the whole recording."""
    import numpy as np

    from saccade.data.recordings import RecordingError
    from saccade.tasks.generation.listening import Heard

    parts, count = [], 0
    for block in sound.blocks:
        parts.append(block)
        count += len(block)
        if count > LONGEST * sound.rate:
            problem = f"it is longer than {LONGEST // 60} minutes, and this model must hear all of it first"
            raise RecordingError(problem, "Cut it, or train a model that listens online.")
    if not count:
        raise RecordingError("it contains no sound", "Record it again.")
    samples = np.concatenate(parts)
    seconds = len(samples) / sound.rate
    (answer,) = run.predict([{"array": samples, "sampling_rate": sound.rate}], **options)
    emit({"text": answer.text, "read": round(seconds, 3), "looked_at": round(seconds, 3)})
    return Heard(answer.text, seconds, [seconds], 1.0, seconds, getattr(answer, "finished", True))
