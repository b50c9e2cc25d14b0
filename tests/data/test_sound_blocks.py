"""Recordings block by block."""

import io
import struct

import numpy as np
import pytest

from saccade.data.recordings import RecordingError, read_samples
from saccade.data.sound_blocks import pipe_blocks, read_blocks
from tests.data.sounds import floats, pcm, tone

SOUND = tone(440.0, 0.13)


def joined(found) -> np.ndarray:
    return np.concatenate([*found.blocks])


class Pipe(io.RawIOBase):
    """Gives large reads piece by piece, and cannot seek."""

    def __init__(self, content: bytes) -> None:
        self.content = io.BytesIO(content)

    def read(self, count: int = -1) -> bytes:
        return self.content.read(count if count < 50 else min(count, 301))


@pytest.mark.parametrize("content", [pcm(SOUND), pcm(np.stack([SOUND, -SOUND / 2], 1), rate=11025), floats(SOUND)])
def test_files_and_pipes(content, tmp_path) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    wanted, rate = read_samples(content)
    for found in (read_blocks(str(tmp_path / "a.wav"), 0.01), pipe_blocks(Pipe(content), 0.01)):
        assert found.rate == rate
        blocks = [*found.blocks]
        assert len(blocks[0]) == round(0.01 * rate)
        np.testing.assert_array_equal(np.concatenate(blocks), wanted)


def test_compressed_files(tmp_path) -> None:
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "a.flac", SOUND, 8000)
    np.testing.assert_array_equal(
        joined(read_blocks(str(tmp_path / "a.flac"), 0.01)), read_samples(str(tmp_path / "a.flac"))[0]
    )


@pytest.mark.parametrize("announced", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_pipe_of_unknown_length(announced) -> None:
    content = pcm(SOUND)
    content = content[:40] + struct.pack("<I", announced) + content[44:]
    np.testing.assert_array_equal(joined(pipe_blocks(Pipe(content), 0.02)), read_samples(pcm(SOUND))[0])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a WAV file"),
        (b"fLaC" + bytes(60), "not a WAV file"),
        (pcm(SOUND)[:30], "ends before its sound"),
        (pcm(SOUND)[:22] + b"\0\0" + pcm(SOUND)[24:], "0 channels"),
        (pcm(SOUND)[:24] + bytes(4) + pcm(SOUND)[28:], "sample rate of 0"),
        (pcm(SOUND)[:-100], "50 samples too early"),
        (floats(np.array([0.1, np.nan])), "NaN"),
    ],
)
def test_bad_pipes(content, problem) -> None:
    with pytest.raises(RecordingError, match=problem):
        joined(pipe_blocks(Pipe(content), 1.0))
