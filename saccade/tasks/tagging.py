"""A label for each word of a text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from saccade.data.cell import Cell
from saccade.evaluation import tags
from saccade.evaluation.figures import Figure
from saccade.evaluation.tables import Table
from saccade.fields import Field, Label, Text, WordPieces
from saccade.fields.looking import Looking, last_self_attention
from saccade.fields.tags import pad_lists
from saccade.interpretation.explorer import Measure, Outcome
from saccade.interpretation.recording import Trace
from saccade.tasks.answers import NOWHERE, Answer, Attended
from saccade.tasks.arguments import chosen_metrics
from saccade.tasks.base import Example, Row, Task
from saccade.tasks.forms import ClassificationOptions
from saccade.tasks.labelling import OneLabel

TAGS = "What the model answered for each word. A word that the model reads in pieces is judged by its first piece."
WRONG = "The words whose tags differ from those of the data."


class TagPerWord(OneLabel):
    """Each word of the first input has one label. A model returns logits for all positions of the text.

    Args:
        label: the field of the tags.
        inputs: the fields that the model reads.
    """

    name = "tags"
    unit = "words"
    picture = ""

    def __init__(self, label: Label, inputs: Mapping[str, Field]) -> None:
        super().__init__(label)
        self.role, self.text = next(iter(inputs)), text_to_tag(inputs)

    def metrics(self, names: Sequence[str]) -> dict[str, bool]:
        return chosen_metrics(names, tags.HIGHER_IS_BETTER)

    def check_example(self, example: Example, cell: Cell) -> None:
        if "label" not in example:
            return
        words, given = len(self.text.show(example[self.role]).split()), len(example["label"])
        if words != given:
            fix = "Give one tag per word; words are separated by spaces."
            counted = f"{words} word{'s' * (words != 1)} but {given} tag{'s' * (given != 1)}"
            raise cell.bad(f"the {self.role} has {counted}", fix)

    def complete(self, row: Row, example: Example) -> Row:
        return {**row, "places": word_places(self.text, example[self.role], self.text.size(row[self.role]))}

    def left_out(self, row: Row) -> str | None:
        fits = "label" not in row or len(row["places"]) == len(row["label"])
        return None if fits else "text longer than its max_length"

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        padded = pad_lists([row["places"] for row in rows])
        return {"label_places": padded["values"], "label_places_mask": padded["mask"]}

    def wanted(self, batch: Mapping[str, Tensor]) -> Tensor:
        return batch["label"][batch["label_mask"]]

    def logits(self, found: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        return at_words(found, batch).float()

    def answers(
        self,
        task: Task,
        model: nn.Module,
        batch: dict[str, Tensor],
        examples: Sequence[Example],
        options: ClassificationOptions,
    ) -> list[Answer]:
        if options.top > 1:
            raise ValueError("top lists several labels of one input, but every word has one tag: leave it out.")
        found, weights = self.of_positions(task, model, batch)
        lengths = batch[f"{self.role}_mask"].sum(1).tolist()
        counts = batch["label_places_mask"].sum(1).tolist()
        answers = []
        for row, (example, several) in enumerate(zip(examples, found.split(counts), strict=True)):
            value = example[self.role]
            surest, chosen = (each.tolist() for each in several.max(1))
            words = self.text.show(value).split()[: counts[row]]
            attention = None
            if weights is not None:
                places = batch["label_places"][row, : counts[row]].cpu()
                keys = self.text.position_names(value, lengths[row])
                attention = Attended(weights[row, places, : len(keys)], words, keys)
            details = {"words": words, "probabilities": surest}
            given = [self.label.names[n] for n in chosen]
            answers.append(Answer(given, min(surest, default=1.0), attention, details=details))
        return answers

    def empty_answer(self) -> Answer:
        return Answer([], 1.0, NOWHERE, details={"words": [], "probabilities": []})

    def looking(self, task: Task, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
        """The last attention of the texts to themselves."""
        return last_self_attention(trace, self.role, len(batch[self.role]))

    def score(self, task: Task, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Figure]:
        wanted = [example["label"] for example in examples]
        return tags.score_tags([answer.value for answer in answers], wanted, list(task.metrics))

    def intervals(
        self, task: Task, answers: Sequence[Answer], examples: Sequence[Example], samples: int
    ) -> dict[str, tuple[float, float]]:
        return Task.intervals(task, answers, examples, samples)

    def tables(self, answers: Sequence[Answer], examples: Sequence[Example]) -> list[Table]:
        return tags.tables_of_tags([answer.value for answer in answers], [example["label"] for example in examples])

    def draw(self, answers: Sequence[Answer], examples: Sequence[Example], path: str | os.PathLike[str]) -> None:
        raise ValueError("tags have no probabilities to draw.")

    def describe(self, example: Example, answer: Answer) -> tuple[list[Measure], list[Outcome]]:
        words = answer.details["words"]
        shown = " ".join(f"{word}/{tag}" for word, tag in zip(words, answer.value, strict=True))
        measures = [Measure(name="tags", value=shown, meaning=TAGS)]
        if "label" in example:
            each = zip(words, answer.value, example["label"], strict=False)
            wrong = [f"{word}/{tag} instead of {right}" for word, tag, right in each if tag != right]
            measures.append(Measure(name="wrong", value=", ".join(wrong) or "none", meaning=WRONG))
        return measures, []


def text_to_tag(inputs: Mapping[str, Field]) -> Text | WordPieces:
    """The text whose words get tags: the first input."""
    text = next(iter(inputs.values()))
    if not isinstance(text, Text | WordPieces):
        raise ValueError(f"tags belong to the words of a text, but the first input is {type(text).__name__}.")
    if isinstance(text, WordPieces):
        text.pairs = False
        if text.cut != "end":
            raise ValueError(f"tags belong to the words of a text, but cut={text.cut!r} leaves out some: use end.")
    return text


def word_places(text: Text | WordPieces, value: Any, read: int) -> list[int]:
    """Where the words of a text begin among the positions that are read, the last of which is the end."""
    return [place for place in text.word_starts(value) if place < read - 1]


def at_words(found: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """The logits of the words, one text after another: (words, classes), from (batch, positions, classes)."""
    if found.dim() != 3:
        raise ValueError(
            f"tags need a model that returns (batch, positions, classes), such as tagging, not {tuple(found.shape)}."
        )
    places = batch["label_places"].unsqueeze(2).expand(-1, -1, found.shape[2])
    return found.gather(1, places)[batch["label_places_mask"]]
