"""Whether a model looks at the right part of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from saccade.evaluation.figures import Figure

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of the width and height of what the model reads of a picture."""


def pointing_accuracy(
    weights: Sequence[Tensor], boxes: Sequence[Sequence[Box | None]], grid: tuple[int, int]
) -> Figure:
    """The percentage of words with a known box whose largest weight lies in it.

    A place of the grid lies in a box if its centre does.

    Shapes:
        weights: for each caption (words, lines x columns), line by line; boxes: one for each word, None if it has none.

    Reference:
        The pointing game of Zhang et al. (2016), arXiv:1608.00507.
    """
    lines, columns = grid
    hits = total = 0
    for looked, known in zip(weights, boxes, strict=True):
        if looked.dim() != 2 or looked.shape[1] != lines * columns or len(looked) < len(known):
            raise ValueError(
                f"weights must be (words, {lines * columns}) for {len(known)} words and a grid of {lines} x {columns}, "
                f"got {tuple(looked.shape)}."
            )
        for place, box in zip(looked.argmax(1).tolist(), known, strict=False):
            if box is None:
                continue
            left, top, right, bottom = box
            x, y = (place % columns + 0.5) / columns, (place // columns + 0.5) / lines
            hits += left <= x < right and top <= y < bottom
            total += 1
    return Figure(100.0 * hits / max(total, 1), "% of words with a box whose largest weight is in it")
