"""What a task is: how examples become batches, batches a loss, and predictions figures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade.evaluation import Figure
from saccade.registry import Registry

Example = Mapping[str, Any]
"""What a user's file holds of one case: a value for each of the task's columns."""

Encoded = dict[str, Any]
"""An example as numbers: lists of ints or floats, nested as deep as need be, so that Arrow can store it."""


class Loss(NamedTuple):
    """A loss summed over the items of a batch, so that batches of any size, on any process, add up exactly."""

    total: Tensor
    """The sum over all items; what is minimised is the sum over a global batch divided by its count."""

    count: Tensor  # type: ignore[assignment] # tuples have a method of that name
    """How many items there were: target tokens, documents, frames."""

    parts: dict[str, Tensor] = {}  # noqa: RUF012 (never written to)
    """Other sums over the same items, to be watched: the total without its penalties, items guessed right."""


@dataclass(frozen=True)
class Prediction:
    """What a model says about one input, and where it looked."""

    text: str
    """The answer as its user reads it: a translation, a label, a caption."""

    score: float
    """How sure the model is, higher = surer, and what answers are ranked by; the scale is the task's."""

    tokens: list[int] = field(default_factory=list)
    """The ids that the answer was made of."""

    source: list[str] = field(default_factory=list)
    """A name for each thing that could be looked at: source pieces, image regions, frames."""

    target: list[str] = field(default_factory=list)
    """A name for each step of the answer, the end of the sentence included if it is a step."""

    weights: Tensor | None = None
    """(target, source): where each step looked; None without attention."""

    nbest: list[Prediction] = field(default_factory=list)
    """The best answers, this one first, if several were asked for."""

    finished: bool = True
    """Whether the answer came to its end before the most steps that it was allowed."""

    source_words: list[list[int]] = field(default_factory=list)
    """The places in `source` of each word's pieces, where the source is a text."""

    target_words: list[list[int]] = field(default_factory=list)
    """The places in `target` of each word's pieces, where the answer is a text."""

    log_prob: float | None = None
    """The log-probability of the whole answer, its end included, with nothing added or divided; None if unknown."""


class Task:
    """How examples become batches, batches a loss, and predictions figures.

    The constructor is the configuration; what is learnt from the data (vocabularies, means, label names) comes from
    `fit` and goes to `save`. A new task writes `encode`, `collate`, `loss`, `predict` and `score`, and `fit`, `sizes`,
    `save` and `load` if it learns anything from the data before training.
    """

    columns: tuple[str, ...] = ()
    """What every training example must hold."""

    scored: tuple[str, ...] | None = None
    """What an example must hold to be evaluated, if less."""

    metrics: Mapping[str, bool] = {}
    """The figures that `evaluate` gives, and whether higher is better."""

    def fit(self, examples: Iterable[Example]) -> None:
        """Learns what encoding needs from the training data; by default nothing."""

    def encode(self, example: Example) -> Encoded:
        """An example as numbers. Input without the target columns is encoded too, without its targets."""
        raise NotImplementedError

    def size(self, encoded: Encoded) -> int | tuple[int, ...]:
        """What an example costs in the token budget of a batch; by default the length of its longest value.

        Several numbers are the sizes of parts that are padded apart, such as source and target.
        """
        return max((len(value) for value in encoded.values() if isinstance(value, Sequence)), default=1)

    def collate(self, encoded: Sequence[Encoded]) -> dict[str, Tensor]:
        """Padded tensors of several examples, batch first."""
        raise NotImplementedError

    def keeps(self, encoded: Encoded) -> bool:
        """Whether an example is for training; one that is too long may not be."""
        return True

    def sizes(self) -> dict[str, Any]:
        """The arguments of a model that follow from the data, such as vocabularies; stand-ins for them before `fit`."""
        return {}

    def check(self, model: nn.Module) -> None:
        """Raises a ValueError if the model, which may be a mere outline, cannot take all that `keeps` keeps."""

    def build(self, model_class: type[nn.Module], **arguments: Any) -> nn.Module:
        """A model with the sizes that follow from the data added to the arguments."""
        return model_class(**self.sizes(), **arguments)

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Loss:
        """The summed loss of a batch."""
        raise NotImplementedError

    def predict(self, model: nn.Module, inputs: Sequence[Any], **options: Any) -> list[Prediction]:
        """One prediction for each input, in their order; options are those of the search."""
        raise NotImplementedError

    def batches(self, inputs: Sequence[Any], batch_size: int) -> list[list[int]]:
        """The numbers of the inputs that `predict` takes together."""
        numbers = list(range(len(inputs)))
        return [numbers[start : start + batch_size] for start in range(0, len(numbers), batch_size)]

    def unread(self, model: nn.Module, inputs: Sequence[Any]) -> dict[int, str]:
        """Of inputs that are longer than `predict` reads: what is left out of each, by its number from 0."""
        return {}

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raises `ValueError` for options that `predict` does not take, before any work; by default all may be."""

    def describe_search(self, options: Mapping[str, Any]) -> str:
        """How predictions with these options are made, in a few words; empty if there is but one way."""
        return ""

    def evaluate(self, model: nn.Module, examples: Sequence[Example], **options: Any) -> dict[str, float]:
        """The figures named in `metrics`, of predictions on examples whose targets are known."""
        figures = self.score(self.predict(model, examples, **options), examples)
        return {name: figure.value for name, figure in figures.items()}

    def score(self, predictions: Sequence[Prediction], examples: Sequence[Example]) -> dict[str, Figure]:
        """The figures of predictions that were made already, each with how exactly it was computed."""
        raise NotImplementedError

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes what `fit` learnt into a folder that exists; by default there is nothing."""

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Reads what `save` wrote into a task constructed with the same arguments."""


tasks: Registry[Task] = Registry("task", base=Task, home="saccade.tasks")
