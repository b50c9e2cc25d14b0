"""Rows of different lengths, computed with little padding."""

from __future__ import annotations

import numpy as np
from torch import Tensor

STEP = 12
"""The fixed cost of a step of a recurrent layer, in rows."""

BLOCK = 400
"""The fixed cost of a block, in rows times steps."""


def length_blocks(lengths: Tensor) -> list[Tensor]:
    """Groups rows by length, so that each group can be padded to its longest row at the smallest total cost.

    A group of n rows, the longest of length l, costs (n + STEP) l + BLOCK. The groups are found by dynamic programming
    over the lengths that occur. Rows of length 0 are in none.

    Shapes:
        lengths (rows,) -> for each group the numbers of its rows, (group,), from short to long.
    """
    order = lengths.argsort(stable=True)
    order = order[int((lengths == 0).sum()) :]
    lengths_found, counts = np.unique(lengths[order].cpu().numpy(), return_counts=True)
    ends = np.concatenate([[0], counts.cumsum()])
    least, begins = np.zeros(len(ends)), np.zeros(len(ends), dtype=np.int64)
    for end in range(1, len(ends)):
        costs = least[:end] + (ends[end] - ends[:end] + STEP) * lengths_found[end - 1] + BLOCK
        begins[end] = costs.argmin()
        least[end] = costs[begins[end]]
    sizes: list[int] = []
    end = len(ends) - 1
    while end:
        sizes.insert(0, int(ends[end] - ends[begins[end]]))
        end = int(begins[end])
    return list(order.split(sizes)) if sizes else []
