"""Predicting tokens: how well over whole texts, and what fills the blanks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from saccade.fields.wordpieces import MASK
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Task

SHOWN = 5
"""How many candidates for a blank are listed."""


def guesses(logits: Tensor, wanted: Tensor) -> Tensor:
    """(tokens, 3): the log-probability of each wanted token, 1, and 1 if the model would have chosen it.

    Args:
        logits: (tokens, vocab).
        wanted: (tokens,).
    """
    log_probs = logits.float().log_softmax(-1)
    own = log_probs.gather(1, wanted[:, None])[:, 0]
    return torch.stack([own, torch.ones_like(own), (log_probs.argmax(-1) == wanted).to(own)], dim=1).double().cpu()


def summed_over_texts(
    task: Task,
    model: nn.Module,
    examples: Sequence[Example],
    sums: Callable[[dict[str, Tensor]], Tensor],
    *,
    width: int,
    together: int,
) -> list[list[float]]:
    """What `sums` counts, for each text, which may have any number of rows.

    Args:
        task: cuts examples into rows.
        model: on the device that batches go to.
        examples: texts.
        sums: what to count in each row of a batch: (rows, width), of float64 on the CPU.
        width: how many numbers it counts.
        together: the rows of a batch.
    """
    device = next(model.parameters()).device
    pieces = [(number, row) for number, example in enumerate(examples) for row in task.rows(example)]
    found = torch.zeros(len(examples), width, dtype=torch.float64)
    for start in range(0, len(pieces), together):
        numbers, rows = zip(*pieces[start : start + together], strict=True)
        batch = {name: tensor.to(device) for name, tensor in task.collate(rows).items()}
        found.index_add_(0, torch.tensor(numbers), sums(batch))
    counted: list[list[float]] = found.tolist()
    return counted


def fill_blanks(
    log_probs: Tensor,
    texts: Tensor,
    examples: Sequence[Example],
    *,
    pieces: Callable[[list[int]], list[str]],
    write: Callable[[int, list[int]], str],
    first: int = 0,
) -> list[Answer]:
    """The texts with the likeliest token in each blank, which is filled in independently of the others.

    Args:
        log_probs: (blanks, tokens): those of all texts, one after another.
        texts: (blanks,): the number of the text that each blank belongs to.
        examples: the texts.
        pieces: the names of tokens.
        write: the text of a number, with these tokens in its blanks.
        first: the id of the first token.
    """
    best = log_probs.float().topk(min(SHOWN, log_probs.shape[-1]))
    answers = []
    for number, example in enumerate(examples):
        own = texts == number
        if not own.any():
            raise ValueError(f"{example['text'][:60]!r} has no {MASK} to fill in: write one, or ask for score.")
        candidates, found = (best.indices[own] + first).tolist(), best.values[own]
        blanks = [
            dict(zip(pieces(several), [round(p, 6) for p in chances], strict=True))
            for several, chances in zip(candidates, found.exp().tolist(), strict=True)
        ]
        filled = write(number, [several[0] for several in candidates])
        answers.append(Answer(filled, float(found[:, 0].mean()), details={"blanks": blanks}))
    return answers
