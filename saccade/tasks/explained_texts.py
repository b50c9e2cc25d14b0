"""What a language model looks at in a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import nn

from saccade.data.special import BOS, EOS, NAMES
from saccade.fields.looking import maps_over
from saccade.fields.wordpieces import MASK
from saccade.interpretation.explorer import Item, Map, Measure, Outcome, TextAxis
from saccade.interpretation.recording import Trace
from saccade.models import LanguageModel
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example
from saccade.tasks.explaining import RecordOptions, explain_inputs, recorded
from saccade.tasks.pointing_back import trust, with_vocabulary
from saccade.tasks.text_data import TextData

SHOWN = 300
"""How many tokens of a text are explained if the model has no maximum length."""


class ExplainedTexts(TextData):
    """Texts whose attention to themselves is shown, and what a pointer adds to it."""

    explain_options = RecordOptions

    def shown_in_part(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        most = self._most_shown(model) - self.causal  # the last one is only predicted
        lengths = {number: len(self._ids(self.example(value)["text"])) for number, value in enumerate(inputs)}
        return {
            number: f"{length:,} tokens, but the explanation only reads the first {most:,}"
            for number, length in lengths.items()
            if length > most
        }

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        own = {**options, "score": True}
        describe = partial(self._describe, model)
        return explain_inputs(self.apart(), model, examples, answers, describe=describe, look=self._look, **own)

    def _describe(self, model: nn.Module, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        meaning = "The mean log-probability of the tokens of this text, in nats: higher is more expected."
        found = [Measure(name="mean log-probability", value=answer.score, meaning=meaning)]
        trusted = trust(self._read_and_recorded(model, example)[1])
        if trusted is not None:
            meaning = "The mean share of the pointer in the probability of a next token; the vocabulary has the rest."
            found.append(Measure(name="trust in the pointer", value=float(trusted.mean()), meaning=meaning))
        return found, []

    def _read_and_recorded(self, model: nn.Module, example: Example) -> tuple[list[int], Trace]:
        """The tokens that an explanation shows, the one to predict last included, and all attention over them."""
        ids = self.encode(example)["text"][: self._most_shown(model) + 1]
        given = torch.tensor([ids[:-1] if self.causal else ids])
        return ids, recorded(model, given, torch.ones_like(given, dtype=torch.bool))

    def _most_shown(self, model: nn.Module) -> int:
        """The most tokens of a text that an explanation shows."""
        return reader_of(model).longest() or SHOWN if self.contiguous else self.text.max_length

    def _look(self, model: nn.Module, example: Example, answer: Answer) -> list[Map]:
        """Every attention of the text to itself; for a long text, that of its first piece."""
        ids, trace = self._read_and_recorded(model, example)
        pieces, words, tokeniser = [NAMES[BOS]], [], self.text.tokeniser
        for number, part in enumerate(self._between_blanks(example["text"])):
            pieces += [MASK] * (number > 0)
            words += [[place + len(pieces) for place in word] for word in tokeniser.words(part) if word]
            pieces += map(tokeniser.shown, tokeniser.parts(part))
        every = [*pieces, NAMES[EOS]][: len(ids)]
        pieces = every[: len(ids) - self.causal]
        inside = [word for word in words if word[-1] < len(pieces)]
        special = [place for place, piece in enumerate(pieces) if place == 0 or ids[place] == EOS]
        axis = TextAxis(pieces=pieces, words=inside if len(inside) > 1 else None, special=special)
        return [with_vocabulary(each, every[1:]) for each in maps_over(axis, trace, answer.text)]


def reader_of(model: nn.Module) -> LanguageModel:
    """The model of this task, which may be any module with the methods of a `LanguageModel`."""
    return cast(LanguageModel, model)
