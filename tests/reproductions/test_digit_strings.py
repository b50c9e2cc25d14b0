"""The command at toy scale, on tones with the names of the recordings, and the committed figures."""

import json
import random

import numpy as np
import pytest

from saccade.data.recordings import read_samples
from tests.data.sounds import digit_archive
from tests.reproductions.scripts import ROOT, script

strings = script("digit-strings")


@pytest.fixture
def data(tmp_path):
    return digit_archive(tmp_path / "recordings.zip", recordings=6, seconds=0.05)


def test_models_are_trained_and_measured(data, tmp_path, monkeypatch):
    monkeypatch.setattr(strings, "SIZES", {**strings.SIZES, "listener_dim": 5, "hidden_dim": 7, "embedding_dim": 5})
    monkeypatch.setattr(strings, "TEST_LENGTHS", (2, 5))
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    counts = ["--steps", "1", "--strings", "8", "--tests", "2"]
    models = ["location-aware and sharpened, pyramid", "location-aware, flat"]
    assert strings.main(["--data", str(data), *places, *counts, "--models", *models]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    for name in models:
        assert found[name]["errors"]["5"] == found[name]["errors_long"] >= 0
    assert len((tmp_path / "results" / "table.md").read_text().splitlines()) == 4
    assert (tmp_path / "results" / "lengths.png").is_file()


def test_strings_are_of_one_speaker_and_of_the_right_recordings(data, tmp_path):
    clips = strings.read_clips(data, tmp_path, "train")
    assert set(clips) == {"ann", "bob"}
    assert [len(several) for several in clips["ann"]] == [1] * 3 + [0] * 7
    assert [len(several) for several in strings.read_clips(data, tmp_path, "test")["ann"]] == [5] * 3 + [0] * 7
    made = strings.make(clips, random.Random(0), 4)
    sound, rate = read_samples(made.sound)
    assert rate == 8000
    assert len(made.digits.split()) == 4
    first = strings.WORDS.index(made.digits.split()[0])
    starts = [clips[speaker][first][0] for speaker in clips]
    assert any(np.allclose(sound[: len(each)], each, atol=1e-6) for each in starts)


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FSDD", raising=False)
    assert script("digit-strings").main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        strings.main(["--data", str(tmp_path / "no.zip")])
    assert "no.zip" in capsys.readouterr().err


def test_the_claim_holds_in_the_committed_figures():
    path = ROOT / "digit-strings" / "results" / "results.json"
    if not path.is_file():
        pytest.skip("digit-strings has not been measured")
    found = json.loads(path.read_text())
    content, location = found["content, pyramid"], found["location-aware, pyramid"]
    assert content["errors_long"] > 2 * location["errors_long"]
    assert found["location-aware, flat"]["minutes"] > location["minutes"]
