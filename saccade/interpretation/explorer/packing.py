r"""Weights in few bytes.

A row is stored as its largest weight and, for each of its weights, a whole number of levels:

.. math:: w_{ij} \approx m_i \left(\frac{c_{ij}}{L}\right)^2, \qquad m_i = \max_j w_{ij}, \quad c_{ij} \in \{0, ..., L\}

The square leaves small weights readable beside a large one. Levels are as many as the room allows.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# 16 bits where that is little, 8 bits as a rule, and fewer levels before a page becomes too large to open.
LADDER = (65535, 255, 191, 127, 95, 63, 47, 39, 31, 27, 23, 19, 15, 7, 3, 1)
SMALL = 1_000_000  # weights that 16 bits are spent on
SAMPLES = 6  # heads that tell how well the rest will compress
# Weights look like noise, in which the search for repeated strings finds false friends: it costs time and room.
STRATEGIES = (zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY)


@dataclass(frozen=True)
class Packed:
    """A compressed block for each head, in order, and the levels that all of them share."""

    blocks: list[bytes]
    levels: int


def pack(weights: Sequence[Tensor], *, most_bytes: int) -> Packed:
    """Compresses every head of every map, with the most levels that fit.

    Shapes:
        weights (heads, queries, keys) each.
    """
    count = sum(each.numel() for each in weights)
    for levels in LADDER:
        if levels > 255 and count > SMALL:
            continue
        if _estimate(weights, levels) > most_bytes:
            continue
        blocks, size = [], 0
        for head in _heads(weights):
            blocks.append(_pack_head(head, levels))
            size += len(blocks[-1])
            if size > most_bytes:
                break
        else:
            return Packed(blocks=blocks, levels=levels)
    raise ValueError(
        f"{count:,} weights do not fit into {most_bytes:,} bytes; show fewer layers or heads, or raise max_megabytes."
    )


def unpack(block: bytes, levels: int, queries: int, keys: int) -> Tensor:
    """What is left of one head: (queries, keys)."""
    raw = zlib.decompress(block)
    largest = np.frombuffer(raw, "<f4", count=queries)
    codes = np.frombuffer(raw, _number(levels), offset=4 * queries).reshape(queries, keys)
    return torch.from_numpy(largest[:, None] * (codes.astype(np.float32) / levels) ** 2)


def _pack_head(head: Tensor, levels: int) -> bytes:
    weights = head.detach().float().cpu()
    largest = weights.amax(dim=-1, keepdim=True) if weights.numel() else weights.new_zeros(len(weights), 1)
    share = weights / torch.where(largest > 0, largest, 1.0)
    codes = (share.sqrt() * levels).round().int().numpy().astype(_number(levels))
    raw = largest.numpy().astype("<f4").tobytes() + codes.tobytes()
    return min((_deflate(raw, strategy) for strategy in STRATEGIES), key=len)


def _deflate(raw: bytes, strategy: int) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, strategy)
    return compressor.compress(raw) + compressor.flush()


def _number(levels: int) -> str:
    return "<u1" if levels < 256 else "<u2"


def _heads(weights: Sequence[Tensor]) -> Iterator[Tensor]:
    return (head for each in weights for head in each)


def _estimate(weights: Sequence[Tensor], levels: int) -> float:
    """Bytes of all heads, from a few that stand evenly apart."""
    heads = list(_heads(weights))
    step = math.ceil(len(heads) / SAMPLES)
    sample = heads[::step]
    size = sum(len(_pack_head(head, levels)) for head in sample)
    return size * sum(head.numel() for head in heads) / max(sum(head.numel() for head in sample), 1)
