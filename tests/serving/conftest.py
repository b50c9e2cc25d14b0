"""Small runs, and a server for them that all tests of a module share."""

import io
import wave
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi_offline", reason="needs the extra serve")

import saccade
from saccade.models import AttentionPooling, RNNSearch

PAIRS = [(word, word[::-1]) for word in ("abc", "bcd", "cab", "dab", "bad", "add", "dad", "cad", "abba", "dada")]
TEXTS = [("good film", "yes"), ("fine film", "yes"), ("bad film", "no"), ("poor film", "no")]
TRAINER = {"max_steps": 5, "learning_rate": 1e-2, "seed": 3}


@pytest.fixture(scope="session")
def reverse(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "reverse"
    model = partial(RNNSearch, embedding_dim=7, hidden_dim=11)
    task = {"source": {"class": "text", "tokeniser": "char"}}
    saccade.train(task=task, model=model, data={"train": PAIRS, "held_out": 0.0}, trainer=TRAINER, output=folder)
    return folder


@pytest.fixture(scope="session")
def films(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "films"
    model = partial(AttentionPooling, embedding_dim=7, hidden_dim=5)
    data = {"train": [{"text": text, "label": label} for text, label in TEXTS], "held_out": 0.0}
    saccade.train(task={"class": "classification"}, model=model, data=data, trainer=TRAINER, output=folder)
    return folder


def wav(samples: int = 1700, *, frequency: float = 440.0) -> bytes:
    """A tone, as a file."""
    tone = 8000 * np.sin(frequency * 2 * np.pi * np.arange(samples) / 8000)
    with io.BytesIO() as file:
        with wave.open(file, "wb") as writer:
            writer.setparams((1, 2, 8000, 0, "NONE", ""))
            writer.writeframes(tone.astype("<i2").tobytes())
        return file.getvalue()


@pytest.fixture(scope="session")
def tones(tmp_path_factory) -> Path:
    """A run that reads files."""
    folder = tmp_path_factory.mktemp("runs") / "tones"
    task = {"source": {"class": "audio", "mels": 5}, "target": {"class": "text", "tokeniser": "char"}}
    model = partial(RNNSearch, embedding_dim=5, hidden_dim=7, source_stride=3)
    pairs = [(wav(frequency=300.0), "low"), (wav(frequency=900.0), "high")]
    saccade.train(task=task, model=model, data={"train": pairs, "held_out": 0.0}, trainer=TRAINER, output=folder)
    return folder
