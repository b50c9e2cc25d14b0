"""Labels for the words of a text: which positions of a model they are read from, and how answers are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from saccade.fields import Field, Text, WordPieces
from saccade.fields.tags import pad_lists
from saccade.interpretation.explorer import Measure
from saccade.interpretation.recording import Trace
from saccade.tasks.answers import Answer, Attended

TAGS = "What the model answered for each word. A word that the model reads in pieces is judged by its first piece."
WRONG = "The words whose tags differ from those of the data."


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


def pad_places(places: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """(batch, words) where the words of each text begin, and the mask of those that exist."""
    padded = pad_lists(places)
    return {"label_places": padded["values"], "label_places_mask": padded["mask"]}


def at_words(found: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Of (batch, positions, classes) those of the words, one text after another: (words, classes)."""
    if found.dim() != 3:
        raise ValueError(
            f"tags need a model that returns (batch, positions, classes), such as tagging, not {tuple(found.shape)}."
        )
    places = batch["label_places"].unsqueeze(2).expand(-1, -1, found.shape[2])
    return found.gather(1, places)[batch["label_places_mask"]]


def tag_answers(
    text: Text | WordPieces,
    values: Sequence[Any],
    lengths: Sequence[int],
    names: Sequence[str],
    found: Tensor,
    batch: Mapping[str, Tensor],
    trace: Trace,
) -> list[Answer]:
    """The answers to a batch of texts, with what each of their words looked at.

    Args:
        text: the field of the texts.
        values: the texts.
        lengths: how many positions of each are read.
        names: of the classes.
        found: the probabilities (words, classes) of all words.
        batch: of the texts.
        trace: what `record` saw.
    """
    looked = [call for call in trace.calls if call.shape[0] == len(values) and call.shape[2] == call.shape[3]]
    weights = looked[-1].weights.float().mean(1).cpu() if looked else None
    counts = batch["label_places_mask"].sum(1).tolist()
    answers = []
    for row, (value, several) in enumerate(zip(values, found.split(counts), strict=True)):
        surest, chosen = (each.tolist() for each in several.max(1))
        words = text.show(value).split()[: counts[row]]
        attention = None
        if weights is not None:
            places = batch["label_places"][row, : counts[row]].cpu()
            keys = text.position_names(value, lengths[row])
            attention = Attended(weights[row, places, : len(keys)], words, keys)
        details = {"words": words, "probabilities": surest}
        answers.append(Answer([names[n] for n in chosen], min(surest, default=1.0), attention, details=details))
    return answers


def describe_tags(answer: Answer, wanted: Sequence[str] | None) -> list[Measure]:
    """The tags of a text, and which are wrong if the right ones are known."""
    words = answer.details["words"]
    shown = " ".join(f"{word}/{tag}" for word, tag in zip(words, answer.value, strict=True))
    measures = [Measure(name="tags", value=shown, meaning=TAGS)]
    if wanted is not None:
        each = zip(words, answer.value, wanted, strict=False)
        wrong = [f"{word}/{tag} instead of {right}" for word, tag, right in each if tag != right]
        measures.append(Measure(name="wrong", value=", ".join(wrong) or "none", meaning=WRONG))
    return measures
