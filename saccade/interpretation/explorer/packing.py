r"""Weights in few bytes.

Each row is stored as its largest weight and an integer per weight:

.. math:: w_{ij} \approx m_i \left(\frac{c_{ij}}{L}\right)^2, \qquad m_i = \max_j w_{ij}, \quad c_{ij} \in \{0, ..., L\}

The square keeps small weights readable next to a large one. There are as many levels as fit.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# 16 bits for small pages, usually 8 bits, and fewer levels before a page becomes too large to open.
LADDER = (65535, 255, 191, 127, 95, 63, 47, 39, 31, 27, 23, 19, 15, 7, 3, 1)
SMALL = 1_000_000  # pages with at most this many weights use 16 bits
SAMPLES = 6  # heads from which to estimate how well the rest will compress
# Weights look like noise: searching them for repeated strings costs time and makes the result larger.
STRATEGIES = (zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY)


@dataclass(frozen=True)
class Packed:
    """A compressed block per head, in order, and their common number of levels."""

    blocks: list[bytes]
    levels: int


def pack(weights: Sequence[Tensor], *, most_bytes: int) -> Packed:
    """Compresses every head of every map with as many levels as fit.

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
    """One head as the page will show it: (queries, keys)."""
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
    """The bytes of all heads, estimated from a few evenly spaced ones."""
    heads = list(_heads(weights))
    step = math.ceil(len(heads) / SAMPLES)
    sample = heads[::step]
    size = sum(len(_pack_head(head, levels)) for head in sample)
    return size * sum(head.numel() for head in heads) / max(sum(head.numel() for head in sample), 1)
