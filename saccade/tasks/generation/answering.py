"""The answers of a generation task: how they are searched for, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from saccade.fields import Text, plain
from saccade.interpretation.alignments import pharaoh
from saccade.tasks.answers import NOWHERE, Answer, GeneratedText
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.generation.answers import alignment_of, answer_of, generated_json, layout_of, source_lengths
from saccade.tasks.generation.constraint_ids import as_ids
from saccade.tasks.generation.options import SearchOptions
from saccade.tasks.generation.origins import origins_of
from saccade.tasks.generation.posteriors import sums_alignments, with_posteriors
from saccade.tasks.generation.rescoring import Rescoring
from saccade.tasks.generation.searching import search, with_ctc
from saccade.tasks.generation.streaming import one_by_one, watch
from saccade.tasks.generation.unseen import UnseenSources
from saccade.tasks.generation.writer import writer


class SearchedTexts(UnseenSources):
    """A task whose answers are texts that a search finds."""

    options = SearchOptions
    writes_texts = True

    def is_empty(self, example: Example, row: Row | None = None) -> bool:
        if row is None or not all(isinstance(plain(field), Text) for field in self.inputs.values()):
            return super().is_empty(example, row)
        return all(row[role] is None or len(row[role]) <= 1 for role in self.inputs)  # no token but the end

    def ranked_by(self, language: Task, model: nn.Module, weight: float) -> Rescoring:
        return Rescoring(language, model, weight)

    def empty_answer(self) -> Answer:
        return GeneratedText("", 0.0, NOWHERE)

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: SearchOptions
    ) -> list[Answer]:
        model = writer(model)
        source, mask, *others = self.sources_of(batch)
        asked = as_ids(options, self.target.tokeniser)
        positions = torch.stack([each.sum(dim=1) for each in (mask, *others[1::2])]).amax(0)
        most, limit = model.longest_target(), self.most_tokens(positions)
        limit = limit if most is None else limit.clamp(max=most)
        encoded = model.encode(source, mask, *others, **self.words_of(batch))
        found = search(with_ctc(model, options), encoded, asked, max_length=asked.max_length or limit)
        if options.alignments and any(h.weights is None for several in found for h in several):
            raise ValueError(f"alignments show what a model looked at, but {type(model).__name__} has no attention.")
        if sums_alignments(model):
            found = with_posteriors(model, source, mask, found)
        origins = origins_of(model, encoded, found)
        lengths = source_lengths(model, encoded, mask)
        return [
            answer_of(
                self.inputs,
                self.target,
                example,
                lengths[row],
                hypotheses,
                layout_of(encoded, row),
                extension=self.extension(example),
                origins=None if origins is None else origins[row],
            )
            for row, (example, hypotheses) in enumerate(zip(examples, found, strict=True))
        ]

    def remarks(self, answers: Sequence[Answer]) -> list[str]:
        cut = sum(not getattr(answer, "finished", True) for answer in answers)
        if len(answers) == 1:
            return ["The answer was cut at its maximum length: see max_length."] if cut else []
        return [f"{cut:,} of {len(answers):,} answers were cut at their maximum length: see max_length."] if cut else []

    def columns(self, options: SearchOptions) -> list[str]:
        return ["answer", *(["alignment"] if options.alignments else [])]

    def cells(self, answer: Answer, options: SearchOptions) -> list[str]:
        links = [pharaoh(alignment_of(answer, subwords=options.subwords))] if options.alignments else []
        return [answer.text, *links]

    def stream(
        self, model: nn.Module, example: Example, options: SearchOptions, emit: Callable[[dict[str, Any]], None]
    ) -> Answer:
        """One text, token by token, by greedy search or sampling; other searches are rejected."""
        alone, vocabulary = one_by_one(options), self.extension(example) or self.target.tokeniser
        return super().stream(watch(model, vocabulary, emit), example, alone, emit)

    def as_json(self, example: Example, answer: Answer, *, attention: bool = True) -> dict[str, Any]:
        shown = super().as_json(example, answer, attention=attention)
        texts = [generated_json(each, attention=attention) for each in answer.alternatives or [answer]]
        return {**{k: v for k, v in shown.items() if k in ("input", "answer", "score", "keys")}, "nbest": texts}
