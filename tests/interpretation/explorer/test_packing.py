"""Weights are stored as finely as the room allows, and never farther off than the page says."""

import pytest
import torch

from saccade.interpretation.explorer.packing import LADDER, pack, unpack
from tests.interpretation.explorer.examples import softmax

PLENTY = 10**9


def bound(weights, levels: int):
    """Half a level of the square root of the row's share, squared, with room for rounding in 32 bits."""
    largest = weights.amax(dim=-1, keepdim=True)
    root = (weights / largest.clamp(min=1e-38)).sqrt()
    return largest * ((root + 0.5 / levels) ** 2 - root**2) + 1e-6 * largest


@pytest.mark.parametrize("levels", [65535, 255, 63, 15])
def test_no_weight_is_farther_off_than_half_a_level(levels, monkeypatch) -> None:
    monkeypatch.setattr("saccade.interpretation.explorer.packing.LADDER", (levels,))
    weights = softmax(3, 11, 13, sharp=4.0)
    weights[1, 4] = 0  # a row that attends to nothing
    weights[2, 7] = torch.eye(13)[5]
    packed = pack([weights], most_bytes=PLENTY)
    assert packed.levels == levels
    assert len(packed.blocks) == 3
    back = torch.stack([unpack(block, levels, 11, 13) for block in packed.blocks])
    assert ((back - weights).abs() <= bound(weights, levels)).all()
    assert torch.equal(back.amax(dim=-1), weights.amax(dim=-1))
    assert torch.equal(back[1, 4], torch.zeros(13))
    assert torch.equal(back[2, 7], weights[2, 7])


def test_small_weights_stay_readable_beside_a_large_one() -> None:
    row = torch.tensor([[[0.98, 0.01, 0.005, 0.004, 0.001]]])
    (block,) = pack([row.expand(1, 300_000, 5)], most_bytes=PLENTY).blocks
    back = unpack(block, 255, 300_000, 5)[0]
    assert ((back - row[0, 0]).abs() / row[0, 0]).max() < 0.07


def test_16_bits_in_small_pages_8_bits_in_large_ones() -> None:
    assert pack([softmax(2, 7, 11)], most_bytes=PLENTY).levels == 65535
    assert pack([torch.zeros(2, 1009, 997)], most_bytes=PLENTY).levels == 255


def test_fewer_levels_where_room_is_short() -> None:
    weights = [softmax(2, 101, 103), softmax(3, 101, 53, seed=1)]
    sizes = []
    for most in (60_000, 30_000, 15_000, 8_000):
        packed = pack(weights, most_bytes=most)
        sizes.append(sum(map(len, packed.blocks)))
        assert sizes[-1] <= most
        assert packed.levels in LADDER
        assert len(packed.blocks) == 5
    assert sizes == sorted(sizes, reverse=True)


def test_too_little_room_for_any_level_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"raise max_megabytes"):
        pack([softmax(2, 101, 103)], most_bytes=100)


def test_maps_without_queries_or_keys() -> None:
    packed = pack([torch.zeros(2, 0, 5), torch.zeros(1, 3, 0)], most_bytes=PLENTY)
    assert unpack(packed.blocks[0], packed.levels, 0, 5).shape == (0, 5)
    assert unpack(packed.blocks[2], packed.levels, 3, 0).shape == (3, 0)
