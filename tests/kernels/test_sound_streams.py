"""Sound that arrives in parts gives what the whole gives."""

import pytest
import torch

from saccade.kernels.log_mel import log_mel
from saccade.kernels.resample import resample
from saccade.kernels.sound_streams import LogMelStream, ResampleStream


def parts(sound: torch.Tensor, seed: int) -> list[torch.Tensor]:
    """Cut at random places, some of them empty."""
    draws = torch.Generator().manual_seed(seed)
    cuts = torch.randint(0, len(sound) + 1, (9,), generator=draws).sort().values
    return list(sound.tensor_split(cuts.tolist()))


@pytest.mark.parametrize(("rate", "to"), [(8000, 8000), (44100, 8000), (8000, 16000), (11025, 8000), (48000, 16000)])
@pytest.mark.parametrize("count", [1, 37, 3001])
def test_resampling(rate, to, count) -> None:
    sound = torch.randn(count)
    stream = ResampleStream(rate, to)
    several = parts(sound, count)
    found = [stream.push(part) for part in several] + [stream.push(sound[:0], last=True)]
    torch.testing.assert_close(torch.cat(found), resample(sound, rate, to), rtol=0, atol=1e-6)
    kept = len(stream.kept)
    assert kept < 300 + 20 * rate // to  # what is over is forgotten


def test_nothing_is_held_back() -> None:
    stream = ResampleStream(16000, 8000)
    assert len(stream.push(torch.randn(1600))) > 700


@pytest.mark.parametrize(("window", "hop"), [(50, 20), (61, 20), (40, 40)])
@pytest.mark.parametrize("count", [1, 19, 20, 1003])
def test_frames(window, hop, count) -> None:
    settings = {"rate": 8000, "mels": 7, "window": window, "hop": hop}
    sound = torch.randn(count)
    stream = LogMelStream(**settings)
    found = [stream.push(part) for part in parts(sound, count)] + [stream.push(sound[:0], last=True)]
    torch.testing.assert_close(torch.cat(found), log_mel(sound, **settings), rtol=1e-4, atol=1e-4)
    assert len(stream.kept) < 3 * window
