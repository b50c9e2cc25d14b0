"""The figures of texts that a model wrote, and the columns that they need."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from saccade.evaluation import Figure, Table
from saccade.evaluation.text import Tokenisation
from saccade.fields import Boxes, Field, Image, Links
from saccade.fields.text import texts_of
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example
from saccade.tasks.generation.answering import SearchedTexts
from saccade.tasks.generation.answers import aer
from saccade.tasks.generation.figures import AER, KNOWN, OF_VOCABULARY, edit_tables, text_figures
from saccade.tasks.generation.pointing import pointing_figures
from saccade.tasks.pointing import BOXES, POINTING


class MeasuredTexts(SearchedTexts):
    """A task whose texts are compared with the right ones, and whose attention with links and boxes."""

    known_metrics = KNOWN
    bleu_tokenize: Tokenisation = "13a"
    """How sacrebleu splits texts."""

    def choose_metrics(self, names: Sequence[str]) -> None:
        if len(self.inputs) > 1 and (AER in names or self.alignment_weight):
            raise ValueError(
                "Alignments connect the words of two texts: leave out aer and alignment_weight, or sources."
            )
        pointing = next((name for name in names if name in POINTING), None)
        if pointing and (len(self.inputs) > 1 or not isinstance(self.source, Image)):
            raise ValueError(f"{pointing} is a figure of pictures: leave it out, or make the only source an image.")
        super().choose_metrics(names)

    @property
    def scored(self) -> dict[str, Field]:
        needed: dict[str, Field] = {"alignment": Links()} if AER in self.metrics else {}
        boxes = {BOXES: Boxes()} if any(name in self.metrics for name in POINTING) else {}
        return {**self.inputs, "target": self.target, **needed, **boxes}

    @property
    def figure_columns(self) -> dict[str, str]:
        pointing = next((name for name in self.metrics if name in POINTING), None)
        return {
            **({"alignment": AER} if AER in self.metrics else {}),
            **({} if pointing is None else {BOXES: pointing}),
        }

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        return text_figures(
            answers,
            self._wanted(examples),
            lambda: [self.target_ids(example, self.extension(example))[:-1] for example in examples],
            self.metrics,
            tokeniser=self.target.tokeniser,
            tokenize=self.bleu_tokenize,
        )

    def _wanted(self, examples: Sequence[Example]) -> list[list[str]]:
        normalise = self.target.tokeniser.normalise
        return [[normalise(text) for text in texts_of(example["target"])] for example in examples]

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        return edit_tables(answers, self._wanted(examples), self.metrics)

    def pooled(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        """Without figures whose numbers differ between vocabularies."""
        return {name: figure for name, figure in self.score(answers, examples).items() if name not in OF_VOCABULARY}

    def measure(self, model: nn.Module, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        figures = self.score(answers, examples)
        if AER in self.metrics:
            pairs = [(self.source.show(e["source"]), texts_of(e["target"])[0]) for e in examples]
            figures[AER] = aer(self.align(model, pairs), examples)
        pointing = [name for name in self.metrics if name in POINTING]
        if pointing:
            figures |= pointing_figures(self, model, examples, pointing)
        return {name: figures[name] for name in self.metrics}
