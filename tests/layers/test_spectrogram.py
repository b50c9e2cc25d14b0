"""Convolutions over time and frequency before a listener."""

import pytest
import torch
from torch.nn import functional as F

from saccade.layers import SpectrogramEmbedding


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return SpectrogramEmbedding(input_dim=7, filters=3, dim=5).double()


@pytest.mark.parametrize("length", [1, 2, 4, 5, 11])
def test_a_position_sees_the_frames_around_it(layer, length) -> None:
    """Written out as products of patches with the kernels."""
    frames = torch.randn(length, 7).double()
    found = frames.unsqueeze(0)
    for convolution in layer.convolutions:
        lines, columns = found.shape[1:]
        padded = F.pad(found, (1, 2, 1, 2))
        found = torch.stack(
            [
                torch.stack(
                    [
                        convolution.weight.flatten(1) @ padded[:, t : t + 3, b : b + 3].flatten() + convolution.bias
                        for b in range(0, columns, 2)
                    ],
                    dim=-1,
                )
                for t in range(0, lines, 2)
            ],
            dim=1,
        ).clamp(min=0)
    wanted = torch.stack([layer.proj(found[:, t].flatten()) for t in range(found.shape[1])])
    embedded, mask = layer(frames.unsqueeze(0), torch.ones(1, length).bool())
    torch.testing.assert_close(embedded[0], wanted)
    assert mask.shape == (1, -(-length // layer.stride))
    assert mask.all()


def test_padding_changes_nothing(layer) -> None:
    lengths = [13, 6, 5]
    frames = torch.randn(3, 13, 7).double()
    mask = torch.arange(13) < torch.tensor(lengths)[:, None]
    embedded, real = layer(torch.where(mask.unsqueeze(-1), frames, torch.nan), mask)
    assert real.sum(1).tolist() == [4, 2, 2]
    for row, length in enumerate(lengths):
        alone, _ = layer(frames[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(embedded[row : row + 1, : alone.shape[1]], alone)


def test_dropout_is_for_training(layer) -> None:
    frames, mask = torch.randn(2, 9, 7), torch.ones(2, 9).bool()
    dropping = SpectrogramEmbedding(input_dim=7, filters=3, dim=5, dropout=0.5)
    assert (dropping(frames, mask)[0] == 0).any()
    assert (dropping.eval()(frames, mask)[0] != 0).all()


@pytest.mark.parametrize("source", [torch.zeros(2, 9, 6), torch.zeros(9, 7), torch.zeros(2, 9, 7, dtype=torch.long)])
def test_other_sources_are_refused(layer, source) -> None:
    with pytest.raises(ValueError, match=r"\(batch, length, 7\)"):
        layer(source, torch.ones(2, 9).bool())


@pytest.mark.parametrize("options", [{"filters": 0}, {"input_dim": 0}, {"dropout": 1.0}])
def test_arguments_that_make_no_sense(options) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        SpectrogramEmbedding(**{"input_dim": 7, "filters": 3, "dim": 5, **options})
