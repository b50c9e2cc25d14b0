"""What a model looked at in its input while it answered, read by `record`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from saccade.evaluation import CAUTION
from saccade.interpretation.explorer import Item, Map, Measure, Outcome
from saccade.interpretation.recording import Trace, record
from saccade.interpretation.recording.trace import matches
from saccade.tasks.answers import Answer, Attended
from saccade.tasks.base import Example, Task
from saccade.tasks.options import Options


@dataclass(frozen=True, kw_only=True)
class RecordOptions(Options):
    """What to show of an answer.

    Args:
        keep: show only the attentions whose names fit this pattern, for example *pooling.
        name: of the model, where several are shown side by side.
    """

    keep: str = "*"
    name: str | None = None


@dataclass
class Looked:
    """The attention of a batch to its input."""

    names: list[list[str]] = field(default_factory=list)
    """A name for each position of each example's input."""
    weights: Tensor | None = None
    """(batch, positions): of the attention that decides, the mean over heads."""

    def of(self, row: int, answer: str) -> Attended | None:
        """What was looked at for one answer."""
        if self.weights is None:
            return None
        names = self.names[row]
        return Attended(self.weights[row : row + 1, : len(names)], [answer], names)


@contextlib.contextmanager
def attended(task: Task, model: nn.Module, batch: dict[str, Tensor], examples: Sequence[Example]) -> Iterator[Looked]:
    """Within it, a forward pass notes the last attention of the model with one query for each example: its pooling."""
    looked = Looked()
    with record(model) as trace:
        yield looked
    role, main = next(iter(task.inputs.items()))
    pooled = [call for call in trace.calls if call.shape[0] == len(examples) and call.shape[2] == 1]
    if pooled:
        looked.weights = pooled[-1].weights.float().mean(1)[:, 0].cpu()
        looked.names = [main.position_names(example[role]) for example in examples]


def explain_inputs(
    task: Any,
    model: nn.Module,
    examples: Sequence[Example],
    answers: Sequence[Answer] | None,
    *,
    describe: Callable[[Example, Answer], tuple[list[Measure], list[Outcome]]],
    look: Callable[[nn.Module, Example, Answer], list[Map]] | None = None,
    **options: Any,
) -> list[Item]:
    """An item for each example: every attention of the model over the positions of its input.

    Args:
        task: with one main input, which comes first.
        model: with attention.
        examples: inputs, with targets if they are known.
        answers: what the model answered, if that is known.
        describe: the measures and outcomes of an answer.
        look: what the model looked at; by default what the main input makes of all its attentions.
        options: those of `RecordOptions`, and of the task's predictions.
    """
    if not examples:
        raise ValueError("There is nothing to explain.")
    own = {each.name for each in fields(RecordOptions)}
    asked = RecordOptions.of({name: value for name, value in options.items() if name in own})
    rest = {name: value for name, value in options.items() if name not in own}
    found = answers if answers is not None else task.predict(model, examples, **rest)
    return [
        _item(task, model, example, answer, asked, look or partial(_look, task), *describe(example, answer))
        for example, answer in zip(examples, found, strict=True)
    ]


def _item(
    task: Any,
    model: nn.Module,
    example: Example,
    answer: Answer,
    asked: RecordOptions,
    look: Callable[[nn.Module, Example, Answer], list[Map]],
    measures: list[Measure],
    outcomes: list[Outcome],
) -> Item:
    role, main = next(iter(task.inputs.items()))
    shown = look(model, example, answer)
    maps = [each for each in shown if matches(each.name, asked.keep)]
    if not maps:
        listed = ", ".join(each.name for each in shown)
        fault = f"keep={asked.keep!r} fits none of {listed}." if shown else "there is nothing to show."
        raise ValueError(f"{type(model).__name__}: {fault}")
    strange = main.unknown(example[role])
    if strange:
        meaning = "Parts of the input that the training data did not have."
        parts = f"{len(strange)}: {' '.join(strange)[:60]}"
        measures = [*measures, Measure(name="unknown", value=parts, meaning=meaning)]
    title = f"{main.show(example[role])[:60]} → {answer.text or '(none)'}"
    return Item(
        title=title if asked.name is None else f"{asked.name}: {title}",
        maps=maps,
        measures=[*measures, Measure(name="caution", value="", meaning=CAUTION)],
        outcomes=outcomes,
    )


def _look(task: Any, model: nn.Module, example: Example, answer: Answer) -> list[Map]:
    role, main = next(iter(task.inputs.items()))
    trace = recorded(model, *task.collate([task.prepare(model, example)]).values())
    maps: list[Map] = main.maps(example[role], trace, answer.text or "(none)")
    return maps


@torch.no_grad()
def recorded(model: nn.Module, *inputs: Tensor) -> Trace:
    """All attention of a forward pass over these inputs, in evaluation mode."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        with record(model) as trace:
            model(*(each.to(device) for each in inputs))
    finally:
        model.train(was_training)
    return trace
