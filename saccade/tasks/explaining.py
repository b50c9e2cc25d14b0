"""What a model attended to in its input while it answered, according to `record`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from saccade.encoders import Encoder
from saccade.evaluation import CAUTION
from saccade.fields.looking import Look, Looking, maps_between
from saccade.interpretation.explorer import Item, Map, Measure, Outcome
from saccade.interpretation.recording import Trace, record
from saccade.interpretation.recording.patterns import matches
from saccade.tasks.answers import Answer, Attended
from saccade.tasks.base import Example, Task
from saccade.tasks.options import Options
from saccade.tasks.rationales import describe_rationale, with_evidence


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
    """The attention of a batch to its inputs."""

    found: list[Attended] = field(default_factory=list)
    """For each example; without names of queries if there is one query, the answer."""

    def of(self, row: int, answer: str) -> Attended | None:
        """The attention behind one answer."""
        if not self.found:
            return None
        attention = self.found[row]
        return attention if attention.queries else replace(attention, queries=[answer])


@contextlib.contextmanager
def attended(
    task: Task, model: nn.Module, batch: Mapping[str, Tensor], examples: Sequence[Example]
) -> Iterator[Looked]:
    """A context in which a forward pass notes the deciding attention of each example, as its field reads it.

    With several inputs, it is the first attention from a single query to one of them or, if there is none, the
    attention from the positions of one input to another.
    """
    looked = Looked()
    with record(model) as trace:
        yield looked
    batch = with_positions(task, model, batch)
    for role, main in task.inputs.items():
        values = [example[role] for example in examples]
        found = main.attended(values, trace, batch.get(f"{role}_mask"))
        if found:
            looked.found = [
                Attended(each.weights.unsqueeze(0), [], each.names, picked=each.picked, role=role) for each in found
            ]
            return
    looked.found = _across(task, trace, batch, examples)


def with_positions(task: Task, model: nn.Module, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The batch with a mask of the positions that a model made of its only input, if it merges some: of a grid."""
    found, encoder = dict(batch), getattr(model, "encoder", None)
    name = f"{next(iter(task.inputs))}_mask"
    if len(task.inputs) == 1 and isinstance(encoder, Encoder) and name in found and found[name].dim() == 2:
        counts = encoder.positions(found[name])
        if not torch.equal(counts, found[name].sum(1)):
            found[name] = torch.arange(int(counts.max()), device=counts.device) < counts.unsqueeze(1)
    return found


def looking(task: Task, trace: Trace, batch: Mapping[str, Tensor]) -> Looking | None:
    """What `attended` reads: the attention that decides, or None if a model has none."""
    count = len(next(iter(batch.values())))
    for role, main in task.inputs.items():
        look = main.look(trace, count, batch.get(f"{role}_mask"))
        if look is not None:
            return Looking(look, role)
    masks = {role: batch[f"{role}_mask"] for role in task.inputs if f"{role}_mask" in batch}
    path, queries, keys = _path_across(trace, masks)
    return None if path is None else Looking(Look(path, apart=True), keys, queries)


def _path_across(trace: Trace, masks: Mapping[str, Tensor]) -> tuple[str | None, str, str]:
    """The last attention from one input to another, and the roles of both; None if there is none."""
    roles = {mask.shape[1]: role for role, mask in masks.items()}
    for path in reversed(trace.paths):
        queries, keys = (roles.get(positions) for positions in trace.joined(path).shape[2:])
        if queries is not None and keys is not None and queries != keys:
            return path, queries, keys
    return None, "", ""


def _across(task: Task, trace: Trace, batch: Mapping[str, Tensor], examples: Sequence[Example]) -> list[Attended]:
    """The last attention from one input to another, averaged over heads; nothing if there is none."""
    masks = {role: batch[f"{role}_mask"] for role in task.inputs if f"{role}_mask" in batch}

    def names(role: str) -> list[list[str]]:
        lengths = masks[role].sum(1).tolist()
        each = zip(examples, lengths, strict=True)
        return [task.inputs[role].position_names(example[role], length) for example, length in each]

    path, queries, keys = _path_across(trace, masks)
    if path is None:
        return []
    each = zip(trace.joined(path).float().mean(1).cpu(), names(queries), names(keys), strict=True)
    return [Attended(row[: len(rows), : len(columns)], rows, columns) for row, rows, columns in each]


def explain_inputs(
    task: Task,
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
        task: with one input or several.
        model: with attention.
        examples: inputs, with targets if they are known.
        answers: what the model answered, if that is known.
        describe: the measures and outcomes of an answer.
        look: returns the maps to show; by default, those that the input fields make of all attentions.
        options: those of `RecordOptions`, and of the task's predictions.
    """
    if not examples:
        raise ValueError("There is nothing to explain.")
    for number, example in enumerate(examples, start=1):
        if task.empty_answer() is not None and task.is_empty(example):
            raise ValueError(
                f"The {' and '.join(task.inputs)} of input {number} is empty: there is nothing to look at."
            )
    own = {each.name for each in fields(RecordOptions)}
    asked = RecordOptions.of({name: value for name, value in options.items() if name in own})
    rest = {name: value for name, value in options.items() if name not in own}
    found = answers if answers is not None else task.predict(model, examples, **rest)
    return [
        _item(task, model, example, answer, asked, look or partial(look_at, task), *describe(example, answer))
        for example, answer in zip(examples, found, strict=True)
    ]


def _item(
    task: Task,
    model: nn.Module,
    example: Example,
    answer: Answer,
    asked: RecordOptions,
    look: Callable[[nn.Module, Example, Answer], list[Map]],
    measures: list[Measure],
    outcomes: list[Outcome],
) -> Item:
    shown = look(model, example, answer)
    maps = with_evidence(task, [each for each in shown if matches(each.name, asked.keep)], example)
    if not maps:
        listed = ", ".join(each.name for each in shown)
        fault = f"keep={asked.keep!r} fits none of {listed}." if shown else "it has no attention to show."
        raise ValueError(f"{type(model).__name__}: {fault}")
    strange = task.unknown([example]).get(0)
    if strange:
        meaning = "Parts of the input that do not occur in the training data."
        parts = f"{len(strange)}: {' '.join(strange)[:60]}"
        measures = [*measures, Measure(name="unknown", value=parts, meaning=meaning)]
    cut = task.shown_in_part(model, [example]).get(0)
    if cut:
        measures = [*measures, Measure(name="read in part", value="", meaning=f"The input has {cut}.")]
    measures = [*measures, *describe_rationale(task, answer, example)]
    values = (each.show(example[role])[:60] for role, each in task.inputs.items())
    given = " | ".join(value for value in values if value)
    title = f"{given} → {answer.text or '(none)'}"
    return Item(
        title=title if asked.name is None else f"{asked.name}: {title}",
        maps=maps,
        measures=[*measures, Measure(name="caution", value="", meaning=CAUTION)],
        outcomes=outcomes,
    )


def look_at(task: Task, model: nn.Module, example: Example, answer: Answer) -> list[Map]:
    """The maps that the input fields make of all attentions while a model answers an example."""
    batch = task.collate([task.prepare(model, example)])
    trace = recorded(model, *task.given(batch))
    batch = with_positions(task, model, batch)
    masks = {role: batch[f"{role}_mask"] for role in task.inputs if f"{role}_mask" in batch}
    lengths = {role: int(mask.sum()) for role, mask in masks.items()}
    if len(task.inputs) == 1:
        role, main = next(iter(task.inputs.items()))
        maps: list[Map] = main.maps(example[role], trace, answer.text or "(none)", lengths.get(role))
        return maps
    axes = {mask.shape[1]: task.inputs[role].axis(example[role], lengths[role]) for role, mask in masks.items()}
    names = {mask.shape[1]: role for role, mask in masks.items()}
    return maps_between(axes, trace, answer.text or "(none)", names)


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
