"""Recordings to text from the command line: tones that stand for letters are learned in seconds."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import saccade
from saccade.cli import main
from saccade.interpretation.explorer import SoundAxis
from tests.data.sounds import pcm, tone

PITCHES = {"a": 500.0, "b": 900.0, "c": 1500.0, "d": 2500.0}
SMALL = {
    "task.source.mels": 16,
    "task.source.time_masks": 0,
    "task.source.mel_masks": 0,
    "model.embedding_dim": 24,
    "model.hidden_dim": 32,
    "model.encoder_layers": 1,
    "model.dropout": 0.0,
    "model.source_stride": 4,
    "trainer.batch_tokens": 1000,
    "trainer.learning_rate": 1e-2,
    "trainer.max_steps": 90,
    "trainer.validate_every": 90,
}


def spoken(text: str, choices: random.Random) -> np.ndarray:
    """A tone for each letter, with pauses."""
    sounds = [(tone(PITCHES[letter], choices.uniform(0.08, 0.13)), np.zeros(300)) for letter in text]
    sound = np.concatenate([part for pair in sounds for part in pair])
    return sound + 0.01 * np.random.default_rng(choices.randrange(2**32)).standard_normal(len(sound))


def made(folder: Path, name: str, count: int, seed: int) -> None:
    """A table of recordings and what they say."""
    choices, rows = random.Random(seed), []
    (folder / name).mkdir()
    for number in range(count):
        text = "".join(choices.choices(list(PITCHES), k=choices.randint(1, 3)))
        path = f"{name}/{number:03}-{text}.wav"
        (folder / path).write_bytes(pcm(spoken(text, choices)))
        rows.append((path, text))
    with open(folder / f"{name}.csv", "w", newline="") as file:
        csv.writer(file).writerows([("file", "said"), *rows])
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    made(folder, "train", 150, 1)
    made(folder, "test", 15, 2)
    settings = [f"--{name}={value}" for name, value in SMALL.items()]
    columns = ["--data.columns", "{source: file, target: said}"]
    given = ["--data.train", str(folder / "train.csv"), *columns, "--output", str(folder / "run")]
    assert main(["train", "speech/rnnsearch", *given, *settings]) == 0
    return folder


def test_it_learns(folder, capsys) -> None:
    assert main(["evaluate", str(folder / "run"), "--data", str(folder / "test.csv"), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["figures"]["exact_match"] > 70.0


def test_predicts_files_and_folders(folder, capsys) -> None:
    run = str(folder / "run")
    assert main(["predict", run, str(folder / "test"), "--format", "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    files = sorted(str(path) for path in (folder / "test").iterdir())
    assert [row["source"] for row in rows] == files
    right = [Path(row["source"]).stem.partition("-")[2] == row["answer"] for row in rows]
    assert sum(right) > 10
    assert main(["predict", run, files[0], "--format", "jsonl"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["input"] == files[0]
    assert shown["answer"] == rows[0]["answer"]
    assert shown["keys"][0] == "0.00 s"
    assert len(shown["nbest"][0]["weights"][0]) == len(shown["keys"])
    assert main(["predict", run, str(folder / "test.csv"), "--columns", "source=file"]) == 0
    assert capsys.readouterr().out.splitlines() == [row["answer"] for row in rows]
    assert main(["predict", run, str(folder / "gone.wav")]) == 2
    assert "There is no file" in capsys.readouterr().err


def test_the_explorer_shows_the_sound(folder, capsys) -> None:
    run, files = saccade.load(folder / "run"), sorted((folder / "test").iterdir())
    (item,) = run.explain([str(files[0])])
    keys = item.maps[-1].keys
    assert isinstance(keys, SoundAxis)
    assert keys.wav is not None
    assert item.maps[-1].weights.shape[-1] == len(keys)
    (forced,) = run.explain([str(files[0])], ["abc"])
    assert forced.maps[-1].queries.names[:3] == ["a", "b", "c"]
    page = folder / "page.html"
    assert main(["explain", str(folder / "run"), str(files[0]), "--output", str(page)]) == 0
    assert files[0].stem in page.read_text()
    (folder / "said.txt").write_text("abc\n")
    targets = ["--targets", str(folder / "said.txt"), "--format", "json"]
    capsys.readouterr()
    assert main(["explain", str(folder / "run"), str(files[0]), *targets]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["title"].endswith("→ abc")


def test_python_takes_recordings_as_datasets_hold_them(folder) -> None:
    run, sound = saccade.load(folder / "run"), spoken("adb", random.Random(5))
    several = [sound, {"array": sound, "sampling_rate": 8000}, {"source": {"array": sound, "sampling_rate": 8000}}]
    assert {answer.text for answer in run.predict(several, beam=1)} == {"adb"}


def test_it_looks_at_each_letter_when_it_is_said(folder) -> None:
    run = saccade.load(folder / "run")
    (answer,) = run.predict([spoken("adb", random.Random(5))], beam=1)
    assert answer.text == "adb"
    centres = (answer.weights * torch.arange(answer.weights.shape[1])).sum(dim=1)[:3].tolist()
    assert centres == sorted(centres)


def test_resumes_to_the_same_model(folder, tmp_path) -> None:
    data = {"train": str(folder / "train.csv"), "columns": {"source": "file", "target": "said"}}
    settings = {**SMALL, "trainer.schedule": "constant", "trainer.validate_every": 3, "task.source.mel_masks": 1}

    def trained(steps, name):
        where = tmp_path / name
        return saccade.train(
            "speech/rnnsearch", data=data, overrides={**settings, "trainer.max_steps": steps}, output=where
        )

    trained(6, "whole")
    trained(3, "halves")
    assert main(["train", "--resume", str(tmp_path / "halves"), "--trainer.max_steps", "6"]) == 0
    whole, halves = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "halves"))
    assert whole == halves


def test_recordings_in_memory(tmp_path) -> None:
    rows = [(tone(pitch, 0.1).astype(np.float32), letter) for letter, pitch in PITCHES.items() for _ in range(3)]
    settings = {**SMALL, "trainer.max_steps": 2, "trainer.validate_every": 2}
    run = saccade.train("speech/rnnsearch", data={"train": rows}, overrides=settings, output=tmp_path / "run")
    dictionary = {"source": {"array": rows[0][0], "sampling_rate": 8000}}
    answers = run.predict([rows[0][0], dictionary], max_length=5)
    assert answers[0].text == answers[1].text
    assert answers[0].attention.keys[0] == "0.00 s"
