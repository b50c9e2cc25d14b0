"""The state of a training in a checkpoint, besides its tensors; checked before it is used."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from saccade.artifacts import ArtifactError, JsonObject, placed
from saccade.training.position import Position
from saccade.training.randomness import check_random_state

if TYPE_CHECKING:
    from saccade.training.checkpoints import Checkpoint
    from saccade.training.schedules import Schedule
    from saccade.training.stream import Stream

MOST_STEPS = 10**12
VALUES: dict[type[torch.optim.Optimizer], set[str]] = {
    torch.optim.Adam: {"step", "exp_avg", "exp_avg_sq"},
    torch.optim.AdamW: {"step", "exp_avg", "exp_avg_sq"},
    torch.optim.Adadelta: {"step", "square_avg", "acc_delta"},
    torch.optim.Adagrad: {"step", "sum"},
    torch.optim.RMSprop: {"step", "square_avg"},
    torch.optim.SGD: set(),
}
"""What PyTorch's optimisers keep for each parameter; all have the parameter's shape, except the number of steps."""


class TrainingState(NamedTuple):
    """The part of a checkpoint that is not tensors."""

    position: Position
    schedule: dict[str, Any]
    stream: dict[str, Any]
    random: list[dict[str, Any]]
    """The state of the generators of each process."""
    average: dict[str, Any]
    """What an average knows besides its weights; empty for a training without one."""


def read_state(
    checkpoint: Checkpoint, *, optimiser: torch.optim.Optimizer, schedule: Schedule, stream: Stream
) -> TrainingState:
    """The state of a checkpoint, if this training can resume from it; if not, `ArtifactError` names the wrong key.

    A schedule may be replaced when a run resumes; the new one starts from its own beginning.
    """
    document = JsonObject(checkpoint.state, "state.json")
    position = read_position(document.inner("position"))
    if position.step != checkpoint.step:
        raise document.wrong("position.step", f"is {position.step}, but the checkpoint is that of {checkpoint.step}")
    random = document.take_list("random", dict)
    if not random:
        raise document.wrong("random", "is empty")
    for place, one in enumerate(random):
        check_random_state(JsonObject(one, document.where, f"random[{place}]"))
    where = _like(document.inner("stream"), stream.state_dict())
    pace = document.inner("schedule")
    kept = schedule.state_dict()
    if pace.values.keys() & kept.keys():
        kept = _like(pace, kept)
    check_optimiser(optimiser, checkpoint.optimiser)
    return TrainingState(position, kept, where, random, read_average(document))


def _like(document: JsonObject, like: dict[str, Any]) -> dict[str, Any]:
    """The values, if they have the keys and types of `like`, and plausible numbers."""
    document.only(like)
    for name, value in like.items():
        bounds = {"least": 0, "most": MOST_STEPS} if isinstance(value, int | float) else {}
        document.take(name, type(value), **bounds)
    return document.values


def read_average(document: JsonObject) -> dict[str, Any]:
    """What `Average.state_dict` returned, if there was an average."""
    if "average" not in document.values:
        return {}
    average = document.inner("average")
    average.only(("count", "losses", "metric"))
    if average.values:
        average.take("count", int, least=0, most=MOST_STEPS)
        average.take_list("losses", float)
        average.take("metric", str)
    return average.values


def read_position(document: JsonObject) -> Position:
    """The position that `dataclasses.asdict` made a dictionary of."""
    document.only(field.name for field in fields(Position))
    for name in ("step", "batches", "waited", "validated"):
        document.take(name, int, least=0, most=MOST_STEPS)
    document.take("seconds", float, least=0.0, most=1e12)
    document.take("step_seconds", float, type(None), least=0.0, most=1e12)
    document.take("best_step", int, type(None), least=0, most=MOST_STEPS)
    document.take("best_score", float, type(None))
    document.take("pending", bool)
    for name in ("scores", "best_scores"):
        if document.take(name, dict, type(None)) is not None:
            scores = document.inner(name)
            for score in scores.values:
                scores.take(score, float)
    if document.values["validated"] > document.values["step"]:
        raise document.wrong("validated", "is after the last step")
    return Position(**document.values)


def load_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Gives an optimiser the state of a checkpoint, or its part of it where parameters are split among processes."""
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    state = {
        number: {
            name: placed(value, parameters[number]) if isinstance(value, Tensor) and value.dim() else value
            for name, value in values.items()
        }
        for number, values in saved["state"].items()
    }
    optimiser.load_state_dict({**saved, "state": state})


def check_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Raises `ArtifactError` unless the optimiser can load this state: the same groups and options, fitting shapes.

    `saved` is what `unpack_optimiser` returned, so that its own structure is right.
    """
    own = optimiser.state_dict()["param_groups"]
    groups = saved["param_groups"]
    if len(groups) != len(own):
        raise _unfit(f"it has {len(groups)} groups of parameters, the training has {len(own)}")
    for number, (group, like) in enumerate(zip(groups, own, strict=True)):
        for name in like.keys() - group.keys():
            raise _unfit(f"group {number} has no {name}; resume with the optimiser that the run began with")
        if group["params"] != like["params"]:
            raise _unfit(f"the parameters of group {number} differ")
        for name, value in like.items():
            if _kind(group[name]) != _kind(value):
                raise _unfit(f"{name} of group {number} is {str(group[name])[:60]}, not a {_kind(value)}")
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    needed = VALUES.get(type(optimiser))
    for number, values in saved["state"].items():
        if not 0 <= number < len(parameters):
            raise _unfit(f"it has values for parameter {number} of {len(parameters)}")
        if needed is None:  # not one of ours, whose values are not known here
            continue
        for name in needed - values.keys():
            raise _unfit(f"{name} of parameter {number} is missing; resume with the optimiser that the run began with")
        for name, value in values.items():
            shape = () if name == "step" else tuple(parameters[number].shape)
            if isinstance(value, Tensor) and tuple(value.shape) != shape:
                raise _unfit(f"{name} of parameter {number} has the shape {tuple(value.shape)}, not {shape}")
            if name in needed and not isinstance(value, Tensor):
                raise _unfit(f"{name} of parameter {number} is not a tensor")


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "switch"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _unfit(problem: str) -> ArtifactError:
    return ArtifactError(f"optimiser.safetensors does not fit this training: {problem}.")
