"""Spans: the part of a text that answers a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.data.errors import DataError
from saccade.evaluation.figures import Figure
from saccade.evaluation.spans import HIGHER_IS_BETTER, score_spans
from saccade.fields import Field, Span, WordPieces
from saccade.fields.text import texts_of
from saccade.interpretation.explorer import Item, Measure, Outcome
from saccade.tasks.answers import Answer
from saccade.tasks.arguments import field_of
from saccade.tasks.base import Example, Loss, Row, Task, tasks
from saccade.tasks.explaining import RecordOptions, explain_inputs
from saccade.tasks.metric_names import SpanMetric
from saccade.tasks.options import Options

NOWHERE = -1
"""The place of a right answer that lies beyond what the model reads."""


@dataclass(frozen=True, kw_only=True)
class SpanOptions(Options):
    """How a span is chosen.

    Args:
        max_answer: the maximum number of tokens in an answer.
    """

    max_answer: int = 30

    def check(self) -> None:
        if not 1 <= self.max_answer <= 1_000_000:
            raise ValueError(f"max_answer must be from 1 to 1000000, got {self.max_answer}.")


@tasks.register("spans")
class Spans(Task):
    r"""Finds the part of a text that answers a question or, without questions, the relevant part.

    .. math:: -\tfrac{1}{2} (\log p_{\text{start}}(i) + \log p_{\text{end}}(j))

    The text is the last of the input's columns, after the question:
    `--data.columns '{text: [question, context], span: answer}'`. A text without an answer points to `[CLS]`.

    Args:
        text: the column or columns of the question and the text.
        metrics: the figures of an evaluation: exact_match, f1.

    Reference:
        Devlin et al. (2019), arXiv:1810.04805, section 4.2.
    """

    options = SpanOptions
    explain_options = RecordOptions
    known_metrics = HIGHER_IS_BETTER

    def __init__(
        self, *, text: Field | str = "wordpieces", metrics: Sequence[SpanMetric] = ("exact_match", "f1")
    ) -> None:
        self.text = field_of("text", text, WordPieces)
        self.inputs = {"text": self.text}
        self.targets = {"span": Span()}
        self.choose_metrics(metrics)

    def sizes(self) -> dict[str, Any]:
        return {**self.input_sizes(), "head": "span"}

    def encode(self, example: Example) -> Row:
        row: Row = {"text": self.text.encode(example["text"])}
        return row if "span" not in example else {**row, "span": self._places(example)}

    def _places(self, example: Example) -> list[int]:
        """The tokens at which the first right answer starts and ends."""
        value, text = example["span"], texts_of(example["text"])[-1]
        if not value["texts"]:
            return [0, 0]
        words = value["texts"][0]
        start = value["starts"][0] if value["starts"][0] >= 0 else text.find(words)
        if start < 0 or text[start : start + len(words)] != words:
            raise DataError(f"the answer {words!r:.60} does not occur in its text, {text!r:.60}.")
        end = start + len(words)
        inside = [place for place, (a, b) in self.text.places(example["text"]).items() if a < end and b > start]
        return [inside[0], inside[-1]] if inside else [NOWHERE, NOWHERE]

    def left_out(self, row: Row) -> str | None:
        return "answer in a part of the text that is not read (see max_length)" if NOWHERE in row["span"] else None

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        logits = self._logits(model, batch)
        wanted = batch["span"].clamp(min=0)  # where the answer is not read, "no answer" is right
        losses = F.cross_entropy(logits, wanted, reduction="none").mean(1)
        right = (logits.argmax(1) == wanted).all(1).float()
        return Loss(losses.sum(), torch.tensor(len(losses), device=losses.device), {"exact": right.sum()})

    def _logits(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """(batch, length, 2), with -inf where no answer can start or end."""
        given = self.given(batch)
        logits: Tensor = model(*given).float()
        mask, segments = batch["text_mask"], batch["text_segments"]
        possible = mask & (segments == segments.max(1, keepdim=True).values)
        possible[:, 0] = True
        return logits.masked_fill(~possible.unsqueeze(-1), -torch.inf)

    def answer(
        self, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example], options: SpanOptions
    ) -> list[Answer]:
        start, end = self._logits(model, batch).log_softmax(1).cpu().unbind(-1)
        length = start.shape[1]
        together = start.unsqueeze(2) + end.unsqueeze(1)
        fits = (
            torch.ones(length, length, dtype=torch.bool).triu()
            & ~torch.ones(length, length).triu(options.max_answer).bool()
        )
        fits[0, 1:] = False
        best = together.masked_fill(~fits, -torch.inf).flatten(1).max(1)
        answers = []
        for example, score, place in zip(examples, best.values.tolist(), best.indices.tolist(), strict=True):
            text = texts_of(example["text"])[-1]
            where = self.text.places(example["text"])
            first, last = (where.get(token) for token in divmod(place, length))
            if first is None or last is None:
                answers.append(Answer("", score, details={"start": None, "end": None}))
            else:
                details = {"start": first[0], "end": last[1]}
                answers.append(Answer(text[first[0] : last[1]], score, details=details))
        return answers

    def empty_answer(self) -> Answer:
        return Answer("", 0.0, details={"start": None, "end": None})

    def portable(self, model: nn.Module) -> dict[str, Any]:
        return {"kind": "spans", "most": None}

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        wanted = [example["span"]["texts"] for example in examples]
        return score_spans([answer.value for answer in answers], wanted, list(self.metrics))

    def explain(
        self, model: nn.Module, examples: Sequence[Example], answers: Sequence[Answer] | None = None, **options: Any
    ) -> list[Item]:
        return explain_inputs(self, model, examples, answers, describe=self._describe, **options)

    def _describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        meaning = "The part of the text that the model answers with."
        return [Measure(name="answer", value=answer.text or "(none)", meaning=meaning)], []
