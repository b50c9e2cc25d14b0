"""Whether a model looks at the right part of its pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from saccade.evaluation import Figure
from saccade.evaluation.pointing import WordBoxes, pointing_accuracy, weight_in_box
from saccade.fields import Boxes, Image
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Task

BOXES = "boxes"
"""The role of the column with the boxes that a caption or label refers to."""

POINTING: dict[str, Callable[[Sequence[Tensor], Sequence[WordBoxes], tuple[int, int]], Figure]] = {
    "pointing": pointing_accuracy,
    "weight_in_box": weight_in_box,
}
"""The figures that need boxes."""


def score_pointing(task: Task, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
    """How far a model attends to the boxes in its pictures, if there are boxes and attention to a grid."""
    if not isinstance(task.extras.get(BOXES), Boxes):
        return {}
    found = [
        (answer.attention.weights, [[box for boxes in example[BOXES] for box in boxes]])
        for answer, example in zip(answers, examples, strict=True)
        if answer.attention is not None
        and isinstance(task.inputs.get(answer.attention.role or ""), Image)
        and any(example.get(BOXES) or ())
    ]
    sides = {math.isqrt(weights.shape[1]) for weights, _ in found}
    if len(sides) != 1 or any(weights.shape[1] != max(sides) ** 2 for weights, _ in found):
        return {}
    weights, boxes, grid = [each for each, _ in found], [each for _, each in found], (max(sides), max(sides))
    return {name: figure(weights, boxes, grid) for name, figure in POINTING.items()}
