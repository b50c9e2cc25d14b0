"""Recordings: what is read from files of every kind, and what is refused."""

import io
import os
import struct
import sys

import numpy as np
import pytest

from saccade.data.recordings import RecordingError, as_wav, read_header, read_samples
from tests.data.sounds import floats, pcm, tone

SOUND = tone(440.0, 0.05)


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_integers_of_every_width(bits) -> None:
    content = pcm(SOUND, bits=bits)
    found, rate = read_samples(content)
    assert rate == 8000
    np.testing.assert_allclose(found, SOUND, atol=0.51 / 2 ** (bits - 1) + 1e-7)
    assert read_header(content)[:3] == (8000, 1, len(SOUND))


@pytest.mark.parametrize("bits", [32, 64])
def test_floating_point(bits) -> None:
    found, rate = read_samples(floats(SOUND, rate=11025, bits=bits))
    assert rate == 11025
    np.testing.assert_array_equal(found, SOUND.astype(np.float32))


def test_channels_are_mixed() -> None:
    left, right = SOUND, tone(700.0, 0.05)
    found, _ = read_samples(pcm(np.stack([left, right], axis=1)))
    np.testing.assert_allclose(found, (left + right) / 2, atol=1e-4)


def test_the_extensible_format_and_a_length_that_is_unknown() -> None:
    plain = pcm(SOUND)
    form = plain[20:36]
    extended = struct.pack("<H", 0xFFFE) + form[2:] + struct.pack("<HHI", 22, 16, 0) + form[:2] + bytes(14)
    content = plain[:12] + b"fmt " + struct.pack("<I", len(extended)) + extended + plain[36:]
    np.testing.assert_array_equal(read_samples(content)[0], read_samples(plain)[0])
    piped = plain[:40] + b"\xff" * 4 + plain[44:]
    np.testing.assert_array_equal(read_samples(piped)[0], read_samples(plain)[0])


def test_only_the_beginning_is_read() -> None:
    found, _ = read_samples(pcm(SOUND), seconds=0.01)
    np.testing.assert_array_equal(found, read_samples(pcm(SOUND))[0][:80])


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.int32])
def test_arrays_of_integers_have_the_range_of_their_type(dtype) -> None:
    limits = np.iinfo(dtype)
    silence = 128 if dtype == np.uint8 else 0
    found, rate = read_samples(as_wav(np.array([limits.min, silence, limits.max], dtype=dtype), 16000))
    assert rate == 16000
    np.testing.assert_allclose(found, [-1.0, 0.0, 1.0], atol=1 / 127)


def test_an_array_comes_back_as_it_was() -> None:
    sound = SOUND.astype(np.float32)
    np.testing.assert_array_equal(read_samples(as_wav(sound, 8000))[0], sound)
    both = np.stack([sound, -sound])
    np.testing.assert_array_equal(read_samples(as_wav(both, 8000))[0], np.zeros_like(sound))


BAD = {
    "empty file": b"",
    "not a recording": b"hello, I am a text",
    "0 samples": pcm(SOUND[:0]),
    "truncated: it announces 800 bytes of sound but contains 100": pcm(SOUND)[:144],
    "truncated: it ends before its sound": pcm(SOUND)[:36],
    "its format is missing": pcm(SOUND)[:12] + pcm(SOUND)[36:],
    "NaN or infinite": floats(np.where(np.arange(400) == 7, np.nan, SOUND)),
    "far too large": floats(np.where(np.arange(400) == 7, 1e30, SOUND)),
    "FLAC, which needs another library": b"fLaC" + bytes(60),
    "WAV with samples of type 7 and 8 bits": pcm(SOUND)[:20] + struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8),
    "announces 0 channels": pcm(SOUND)[:22] + b"\0\0" + pcm(SOUND)[24:],
    "at 17 Hz": pcm(SOUND)[:24] + struct.pack("<I", 17) + pcm(SOUND)[28:],
}
BAD["WAV with samples of type 7 and 8 bits"] += pcm(SOUND)[36:]


@pytest.mark.parametrize("problem", BAD)
def test_bad_recordings(problem, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)  # as if it were not installed
    path = tmp_path / "a.wav"
    path.write_bytes(BAD[problem])
    for source in (str(path), BAD[problem]):
        with pytest.raises(RecordingError) as caught:
            read_header(source)
        assert problem in caught.value.problem
        assert caught.value.fix.endswith(".")


def test_paths_that_are_no_files(tmp_path) -> None:
    for path, problem in ((tmp_path / "gone.wav", "does not exist"), (tmp_path, "not an ordinary file")):
        with pytest.raises(RecordingError, match=problem):
            read_header(str(path))
    with pytest.raises(RecordingError, match="cannot be opened"):
        read_header("nul\0.wav")
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(RecordingError, match="not an ordinary file"):
        read_header(str(tmp_path / "pipe.wav"))


@pytest.mark.parametrize(
    ("array", "rate", "problem"),
    [
        (np.zeros((2, 2, 2)), 8000, "shape"),
        (np.array(["a"]), 8000, "array of"),
        (np.zeros(9), 5, "sample rate"),
        (np.zeros(9), "8000", "sample rate"),
        (np.zeros((900, 2)), 8000, "shape"),
    ],
)
def test_arrays_that_are_no_recordings(array, rate, problem) -> None:
    with pytest.raises(RecordingError, match=problem):
        as_wav(array, rate)


def compressed(samples: np.ndarray, kind: str, rate: int = 8000) -> bytes:
    """A FLAC or OGG file."""
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind)
    return file.getvalue()


LONG = np.random.default_rng(0).standard_normal((9001, 2)) / 8


def test_flac_is_read_exactly_and_mixed() -> None:
    content = compressed(LONG, "FLAC", 11025)
    assert read_header(content)[:3] == (11025, 2, 9001)
    found, rate = read_samples(content)
    assert rate == 11025
    np.testing.assert_allclose(found, LONG.mean(axis=1), atol=2**-15)
    np.testing.assert_array_equal(read_samples(content, seconds=0.1)[0], found[:1103])


def test_ogg_is_read_as_well_as_it_was_compressed(tmp_path) -> None:
    sound = tone(440.0, 1.0)
    (tmp_path / "a.ogg").write_bytes(compressed(sound, "OGG"))
    found, rate = read_samples(str(tmp_path / "a.ogg"))
    assert (rate, len(found)) == (8000, 8000)
    assert np.corrcoef(found, sound)[0, 1] > 0.99


@pytest.mark.parametrize("kind", ["FLAC", "OGG"])
def test_compressed_files_that_lack_their_end_are_named(kind) -> None:
    content = compressed(LONG, kind)
    read_header(content)
    for left in (len(content) - 1, len(content) * 3 // 4, 100):
        with pytest.raises(RecordingError, match=r"truncated|damaged"):
            read_header(content[:left])


@pytest.mark.parametrize("kind", ["FLAC", "OGG"])
def test_random_damage_to_compressed_files_is_never_another_error(kind) -> None:
    content = compressed(LONG, kind)
    draws = np.random.default_rng(1)
    for _ in range(60):
        damaged = bytearray(content)
        for place in draws.integers(0, len(content), draws.integers(1, 9)):
            damaged[place] = draws.integers(0, 256)
        try:
            read_header(bytes(damaged))
            samples, _ = read_samples(bytes(damaged), seconds=1.0)
        except RecordingError:
            continue
        assert np.isfinite(samples).all()


def test_without_soundfile_the_error_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(RecordingError, match="FLAC, which needs another library") as caught:
        read_header(b"fLaC" + bytes(60))
    assert 'pip install "saccade[audio]"' in caught.value.fix
