"""Whether a model looks at the right part of a picture while it writes each word."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from saccade.data.special import EOS
from saccade.evaluation import Figure
from saccade.fields.text import texts_of
from saccade.interpretation.alignments import merge_words
from saccade.tasks.base import Example
from saccade.tasks.generation.forced_alignment import forced_maps, read_head, usual_choice
from saccade.tasks.generation.unseen import UnseenSources
from saccade.tasks.pointing import BOXES, POINTING

BATCH = 32


def pointing_figures(
    task: UnseenSources, model: nn.Module, examples: Sequence[Example], names: Sequence[str]
) -> dict[str, Figure]:
    """The figures of these names, under forced decoding of each picture's first caption."""
    weights = forced_weights(task, model, examples)
    boxes = [example[BOXES] for example in examples]
    side = math.isqrt(weights[0].shape[1])
    if side**2 != weights[0].shape[1]:
        raise ValueError(f"pointing needs places in a square grid, and this model makes {weights[0].shape[1]} of them.")
    return {name: POINTING[name](weights, boxes, (side, side)) for name in names}


def forced_weights(task: UnseenSources, model: nn.Module, examples: Sequence[Example]) -> list[Tensor]:
    """(words, places) of each example: what the model attends to under forced decoding of its first target."""
    tokeniser, choice = task.target.tokeniser, usual_choice(task)
    found = []
    for start in range(0, len(examples), BATCH):
        part = examples[start : start + BATCH]
        texts = [texts_of(example["target"])[0] for example in part]
        ids = [tokeniser.encode(text) for text in texts]
        rows = [
            {"source": task.source.encode(example["source"]), "target": [*own, EOS]}
            for example, own in zip(part, ids, strict=True)
        ]
        maps = forced_maps(model, task.collate(rows))
        if not maps:
            raise ValueError(f"{type(model).__name__} does not attend to its source: leave out {', '.join(POINTING)}.")
        for row, (text, own) in enumerate(zip(texts, ids, strict=True)):
            read = read_head({name: weights[row].float().cpu() for name, weights in maps.items()}, choice)
            steps = read[choice.shift : choice.shift + len(own)]
            found.append(merge_words(steps, [[place] for place in range(steps.shape[1])], tokeniser.words(text)))
    return found
