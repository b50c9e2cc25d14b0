"""Blocks of rows of similar lengths."""

import itertools

import pytest
import torch

from saccade.layers.packing import BLOCK, STEP, length_blocks


def cost(blocks):
    return sum((len(block) + STEP) * max(block) + BLOCK for block in blocks)


def cheapest(lengths):
    """The least cost of all ways to cut the sorted lengths, one by one."""
    ordered = sorted(length for length in lengths if length)
    ways = itertools.product([False, True], repeat=len(ordered) - 1)
    found = []
    for way in ways:
        places = [0, *(place for place, cut in enumerate(way, start=1) if cut), len(ordered)]
        found.append(cost([ordered[a:b] for a, b in itertools.pairwise(places)]))
    return min(found)


@pytest.mark.parametrize("scale", [1, 7, 150])
@pytest.mark.parametrize("seed", range(5))
def test_every_row_once_at_the_least_cost(seed, scale):
    lengths = scale * torch.randint(0, 5, (11,), generator=torch.Generator().manual_seed(seed))
    blocks = length_blocks(lengths)
    assert sorted(torch.cat(blocks).tolist()) == lengths.nonzero().flatten().tolist()
    kept = [lengths[block].tolist() for block in blocks]
    assert list(itertools.chain(*kept)) == sorted(itertools.chain(*kept))
    assert cost(kept) == cheapest(lengths.tolist())


def test_nothing_to_compute():
    assert length_blocks(torch.zeros(0, dtype=torch.long)) == []
    assert length_blocks(torch.zeros(3, dtype=torch.long)) == []


def test_little_padding_among_many_sentences():
    lengths = torch.randint(1, 90, (2000,), generator=torch.Generator().manual_seed(1))
    computed = sum(len(rows) * int(lengths[rows[-1]]) for rows in length_blocks(lengths))
    assert computed < 1.15 * int(lengths.sum())
