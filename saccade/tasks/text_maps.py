"""What a language model looks at in a text."""

from __future__ import annotations

import torch
from torch import nn

from saccade.data.special import BOS, EOS, NAMES
from saccade.fields.looking import maps_over
from saccade.fields.wordpieces import MASK
from saccade.interpretation.explorer import Map, Measure, Outcome, TextAxis
from saccade.interpretation.recording import Trace
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example
from saccade.tasks.explaining import recorded
from saccade.tasks.pointing_back import trust, with_vocabulary
from saccade.tasks.reading_texts import reader
from saccade.tasks.text_data import TextData

SHOWN = 300
"""How many tokens of a text are explained, if a model reads any number."""


def describe(task: TextData, model: nn.Module, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
    """How likely the text is and, for a model that points, how much it trusts its pointer."""
    meaning = "The mean log-probability of the tokens of this text, in nats: higher is more expected."
    found = [Measure(name="mean log-probability", value=answer.score, meaning=meaning)]
    trusted = trust(_read(task, model, example)[1])
    if trusted is not None:
        meaning = "The mean share of the pointer in the probability of a next token; the vocabulary has the rest."
        found.append(Measure(name="trust in the pointer", value=float(trusted.mean()), meaning=meaning))
    return found, []


def look(task: TextData, model: nn.Module, example: Example, answer: Answer) -> list[Map]:
    """Every attention of the text to itself; of a long text, of its first piece."""
    ids, trace = _read(task, model, example)
    pieces, words, tokeniser = [NAMES[BOS]], [], task.text.tokeniser
    for number, part in enumerate(task.between_blanks(example["text"])):
        pieces += [MASK] * (number > 0)
        words += [[place + len(pieces) for place in word] for word in tokeniser.words(part) if word]
        pieces += map(tokeniser.shown, tokeniser.parts(part))
    every = [*pieces, NAMES[EOS]][: len(ids)]
    pieces = every[: len(ids) - task.causal]
    inside = [word for word in words if word[-1] < len(pieces)]
    special = [place for place, piece in enumerate(pieces) if place == 0 or ids[place] == EOS]
    axis = TextAxis(pieces=pieces, words=inside if len(inside) > 1 else None, special=special)
    return [with_vocabulary(each, every[1:]) for each in maps_over(axis, trace, answer.text)]


def _read(task: TextData, model: nn.Module, example: Example) -> tuple[list[int], Trace]:
    """The tokens that an explanation shows, the one to predict last included, and all attention over them."""
    ids = task.encode(example)["text"]
    most = reader(model).longest() or SHOWN if task.contiguous else task.text.max_length
    ids = ids[: most + 1]
    given = torch.tensor([ids[:-1] if task.causal else ids])
    return ids, recorded(model, given, torch.ones_like(given, dtype=torch.bool))
