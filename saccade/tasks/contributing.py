"""What each code of a record contributes to an answer, for models with exact contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from saccade.fields import Visits
from saccade.interpretation.explorer import Contributions, Map, TextAxis, VisitAxis
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example, Task

MOST_SHOWN = 8
"""The maximum number of independent outcomes to show; beyond it, only the most probable are shown."""
SHARES = "contributions"
"""The name of a map that a model without attention has: the share of each visit in what the codes contribute."""


class Linked(NamedTuple):
    """What logits mean: scores of outcomes, and how these become probabilities.

    Args:
        outcomes: their names.
        link: "logistic" for each on its own, "softmax" for all together.
        matrix: (outputs, outcomes): the scores are the logits times it.
    """

    outcomes: list[str]
    link: Literal["logistic", "softmax"]
    matrix: Tensor


class Linking(Protocol):
    """A form of classification whose logits have a known meaning."""

    def linked(self) -> Linked: ...


def with_contributions(
    form: Linking, task: Task, model: nn.Module, example: Example, answer: Answer, maps: list[Map]
) -> list[Map]:
    """Maps over visits, with the contributions of codes if the model has them; a map of its own without attention."""
    found = contributions_of(form, task, model, example)
    if found is None:
        return maps
    field = next(iter(task.inputs.values()))
    axis = field.axis(example[next(iter(task.inputs))])
    assert isinstance(axis, VisitAxis)
    if not maps:
        weights = torch.stack([_shares(each) for each in found]).unsqueeze(0)
        rows = axis if len(found) > 1 else TextAxis(pieces=[answer.text or "(none)"])
        maps = [Map(name=SHARES, weights=weights, queries=rows, keys=axis)]
    return [
        replace(each, contributions=found)
        if isinstance(each.keys, VisitAxis) and len(each.queries) == len(found)
        else each
        for each in maps
    ]


@torch.no_grad()
def contributions_of(form: Linking, task: Task, model: nn.Module, example: Example) -> list[Contributions] | None:
    """The contributions to the answer for the last visit, or for each; None if the model has none.

    The model's `contributions` takes what its `forward` takes; see `saccade.models.RETAIN`.
    """
    explain = getattr(model, "contributions", None)
    role, field = next(iter(task.inputs.items()))
    if explain is None or len(task.inputs) != 1 or not isinstance(field, Visits):
        return None
    device = next(model.parameters()).device
    given = [each.to(device) for each in task.given(task.collate([task.prepare(model, example)]))]
    of_visits, of_patient = field.places(example[role])
    axis = field.axis(example[role])
    count = len(axis)
    was_training = model.training
    model.eval()
    try:
        ends = range(1, count + 1) if getattr(model, "each_visit", False) else [count]
        found = [explain(*(each[:, :end] for each in given[:4]), *given[4:]) for end in ends]
    finally:
        model.train(was_training)
    linked = form.linked()
    matrix = linked.matrix.double()
    several = []
    for end, (codes, static, bias) in zip(ends, found, strict=True):
        parts = [
            _by_code(codes[0, visit], of_visits[visit], len(axis.codes[visit]))
            if visit < end
            else bias.new_zeros(len(axis.codes[visit]), len(bias))
            for visit in range(count)
        ]
        patient = _by_code(static[0], of_patient, len(axis.static))
        scores = [each.double().cpu() @ matrix for each in (bias, patient, *parts)]
        several.append(
            Contributions(
                outcomes=linked.outcomes, link=linked.link, bias=scores[0], static=scores[1], codes=scores[2:]
            )
        )
    return _shortened(several)


def _by_code(features: Tensor, places: Sequence[int], codes: int) -> Tensor:
    """(codes, outputs): the features of each code together; a code that the model does not know gives nothing."""
    index = torch.tensor(list(places), dtype=torch.long, device=features.device)
    return features.new_zeros(codes, features.shape[-1]).index_add(0, index, features[: len(index)])


def _shares(found: Contributions) -> Tensor:
    """(visits,): how much of all contributions is that of each visit."""
    sizes = torch.stack([each.abs().sum() for each in found.codes])
    return sizes / sizes.sum().clamp(min=1e-30)


def _shortened(several: list[Contributions]) -> list[Contributions]:
    """The most probable of many outcomes that are decided on their own: the others do not change them."""
    last = several[-1]
    if last.link == "softmax" or len(last.outcomes) <= MOST_SHOWN:
        return several
    kept = last.probabilities().topk(MOST_SHOWN).indices

    def chosen(each: Contributions) -> Contributions:
        changes: dict[str, Any] = {"outcomes": [each.outcomes[n] for n in kept.tolist()]}
        changes |= {"bias": each.bias[kept], "static": each.static[:, kept], "codes": [c[:, kept] for c in each.codes]}
        return replace(each, **changes)

    return list(map(chosen, several))
