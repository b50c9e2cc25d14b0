"""Whether a model looks at the right part of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from saccade.evaluation.figures import Figure

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as fractions of the width and height of the part of a picture that the model reads."""

WordBoxes = Sequence[Sequence[Box]]
"""For each word, the boxes of what it names; none if unknown."""


def pointing_accuracy(weights: Sequence[Tensor], boxes: Sequence[WordBoxes], grid: tuple[int, int]) -> Figure:
    """The percentage of words with a known box whose largest weight lies in it.

    A place of the grid lies in a box if its centre does. Of several boxes of a word, any counts.

    Shapes:
        weights: for each caption (words, lines x columns), line by line.

    Reference:
        The pointing game of Zhang et al. (2016), arXiv:1608.00507.
    """
    hits = [bool(inside[row.argmax()]) for row, inside in _known(weights, boxes, grid)]
    return Figure(100.0 * sum(hits) / max(len(hits), 1), "% of those with a box whose largest weight is in it")


def weight_in_box(weights: Sequence[Tensor], boxes: Sequence[WordBoxes], grid: tuple[int, int]) -> Figure:
    """The percentage of the weight of words with a known box that lies in it, averaged over these words.

    What lies in a box, and the shapes, are as in `pointing_accuracy`. The signature of the figure says what uniform
    weights would get.
    """
    known = list(_known(weights, boxes, grid))
    share = sum(float(row[inside].sum()) for row, inside in known) / max(len(known), 1)
    even = sum(float(inside.float().mean()) for _, inside in known) / max(len(known), 1)
    return Figure(100.0 * share, f"% of the weight of those with a box; {100.0 * even:.1f} if it were spread evenly")


def places_in(boxes: Sequence[Box], grid: tuple[int, int]) -> Tensor:
    """bool (lines x columns,): the places whose centres lie in any of the boxes."""
    lines, columns = grid
    y, x = (((torch.arange(count) + 0.5) / count) for count in (lines, columns))
    found = torch.zeros(lines, columns, dtype=torch.bool)
    for left, top, right, bottom in boxes:
        found |= ((top <= y) & (y < bottom)).unsqueeze(1) & ((left <= x) & (x < right))
    return found.flatten()


def _known(
    weights: Sequence[Tensor], boxes: Sequence[WordBoxes], grid: tuple[int, int]
) -> Iterator[tuple[Tensor, Tensor]]:
    """The weights of each word with a box, and the places in the box."""
    lines, columns = grid
    for looked, known in zip(weights, boxes, strict=True):
        if looked.dim() != 2 or looked.shape[1] != lines * columns or len(looked) < len(known):
            raise ValueError(
                f"weights must be (words, {lines * columns}) for {len(known)} words and a grid of {lines} x {columns}, "
                f"got {tuple(looked.shape)}."
            )
        for row, each in zip(looked, known, strict=False):
            if each:
                yield row, places_in(each, grid)
