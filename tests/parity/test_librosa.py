"""Features of sounds against librosa's on the same parameters."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from saccade.kernels.log_mel import log_mel, mfcc
from tests.data.sounds import tone

LIBROSA = Path(sys.prefix) / "librosa"
SETTINGS = [(8000, 40, 200, 80), (16000, 80, 400, 160), (16000, 23, 511, 200)]


def sound(rate: int) -> torch.Tensor:
    """A second of tones that come and go, and noise."""
    draws = np.random.default_rng(rate)
    swell = np.linspace(0.0, 1.0, rate) ** 2
    tones = sum(tone(hertz, 1.0, rate, 0.2) * np.roll(swell, rate * n // 3) for n, hertz in enumerate((170, 620, 2900)))
    return torch.tensor(tones + 0.01 * draws.standard_normal(rate)).float()


@pytest.fixture(scope="module")
def wanted(tmp_path_factory) -> dict[str, np.ndarray]:
    if not LIBROSA.is_dir():
        pytest.skip("needs librosa, which make test installs")
    folder = tmp_path_factory.mktemp("librosa")
    np.savez(folder / "in.npz", **{json.dumps(settings): sound(settings[0]).numpy() for settings in SETTINGS})
    script = Path(__file__).with_name("librosa_features.py")
    subprocess.run([sys.executable, script, LIBROSA, folder / "in.npz", folder / "out.npz"], check=True)
    with np.load(folder / "out.npz") as found:
        return dict(found)


@pytest.mark.parametrize("settings", SETTINGS)
def test_log_mel(settings, wanted) -> None:
    rate, mels, window, hop = settings
    found = log_mel(sound(rate), rate=rate, mels=mels, window=window, hop=hop)
    np.testing.assert_allclose(found, wanted[f"{json.dumps(settings)} log_mel"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("top_db", [None, 80.0])
def test_mfcc(settings, top_db, wanted) -> None:
    rate, mels, window, hop = settings
    found = mfcc(sound(rate), rate=rate, mels=mels, window=window, hop=hop, coefficients=13, top_db=top_db)
    np.testing.assert_allclose(found, wanted[f"{json.dumps(settings)} mfcc {top_db}"], atol=1e-4, rtol=1e-5)
