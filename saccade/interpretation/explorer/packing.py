r"""Compresses weights.

Each row is stored as its largest weight and an integer per weight:

.. math:: w_{ij} \approx m_i \left(\frac{c_{ij}}{L}\right)^2, \qquad m_i = \max_j w_{ij}, \quad c_{ij} \in \{0, ..., L\}

The square keeps small weights readable next to a large one. There are as many levels as fit. For maps with only the
largest weights of each row, the columns are stored too: as steps to the right, byte by byte.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.interpretation.explorer.top import TopHead, TopWeights

# 16 bits for small pages, usually 8 bits, and fewer levels before a page becomes too large to open.
LADDER = (65535, 255, 191, 127, 95, 63, 47, 39, 31, 27, 23, 19, 15, 7, 3, 1)
SMALL = 1_000_000  # pages with at most this many weights use 16 bits
PLANES = 3  # bytes of a step to the right: up to 16 million columns
SAMPLES = 6  # heads from which to estimate how well the rest will compress
# Weights look like noise: searching them for repeated strings costs time and makes the result larger.
STRATEGIES = (zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY)


@dataclass(frozen=True)
class PackedWeights:
    """A compressed block per head, in order, and their common number of levels."""

    blocks: list[bytes]
    levels: int


def pack(weights: Sequence[Tensor | TopWeights], *, most_bytes: int) -> PackedWeights:
    """Compresses every head of every map with as many levels as fit.

    Shapes:
        weights (heads, queries, keys) each.
    """
    count = sum(map(_count, _heads(weights)))
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
            return PackedWeights(blocks=blocks, levels=levels)
    raise ValueError(
        f"{count:,} weights do not fit into {most_bytes:,} bytes; show fewer layers or heads, keep fewer weights of "
        "each query, or raise max_megabytes."
    )


def unpack(block: bytes, levels: int, queries: int, keys: int) -> Tensor:
    """One head as the page will show it: (queries, keys)."""
    raw = zlib.decompress(block)
    largest = np.frombuffer(raw, "<f4", count=queries)
    codes = np.frombuffer(raw, _number(levels), offset=4 * queries).reshape(queries, keys)
    return torch.from_numpy(largest[:, None] * (codes.astype(np.float32) / levels) ** 2)


def unpack_top(block: bytes, levels: int, queries: int, k: int) -> TopHead:
    """The same for a head with only the largest weights: (queries, k) each."""
    raw = zlib.decompress(block)
    largest = np.frombuffer(raw, "<f4", count=queries)
    codes = np.frombuffer(raw, _number(levels), count=queries * k, offset=4 * queries).reshape(queries, k)
    planes = np.frombuffer(raw, "<u1", offset=4 * queries + codes.nbytes).reshape(PLANES, queries, k)
    steps = sum(plane.astype(np.int64) << 8 * number for number, plane in enumerate(planes))
    values = largest[:, None] * (codes.astype(np.float32) / levels) ** 2
    return TopHead(torch.from_numpy(values), torch.from_numpy(np.cumsum(steps, axis=1)))


def _pack_head(head: Tensor | TopHead, levels: int) -> bytes:
    steps = b""
    if isinstance(head, TopHead):
        places, order = head.places.cpu().sort(dim=-1)
        weights = head.values.detach().float().cpu().gather(-1, order)
        right = np.diff(places.numpy().astype("<u4"), axis=1, prepend=np.uint32(0)).astype("<u4")
        steps = right.reshape(-1, 1).view("<u1").T[:PLANES].tobytes()
    else:
        weights = head.detach().float().cpu()
    largest = weights.amax(dim=-1, keepdim=True) if weights.numel() else weights.new_zeros(len(weights), 1)
    share = weights / torch.where(largest > 0, largest, 1.0)
    codes = (share.sqrt() * levels).round().int().numpy().astype(_number(levels))
    raw = largest.numpy().astype("<f4").tobytes() + codes.tobytes() + steps
    return min((_deflate(raw, strategy) for strategy in STRATEGIES), key=len)


def _deflate(raw: bytes, strategy: int) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, strategy)
    return compressor.compress(raw) + compressor.flush()


def _number(levels: int) -> str:
    return "<u1" if levels < 256 else "<u2"


def _heads(weights: Sequence[Tensor | TopWeights]) -> Iterator[Tensor | TopHead]:
    return (head for each in weights for head in each)


def _count(head: Tensor | TopHead) -> int:
    return head.values.numel() if isinstance(head, TopHead) else head.numel()


def _estimate(weights: Sequence[Tensor | TopWeights], levels: int) -> float:
    """The bytes of all heads, estimated from a few evenly spaced ones."""
    heads = list(_heads(weights))
    step = math.ceil(len(heads) / SAMPLES)
    sample = heads[::step]
    size = sum(len(_pack_head(head, levels)) for head in sample)
    return size * sum(map(_count, heads)) / max(sum(map(_count, sample)), 1)
