"""The state of a checkpoint: everything that could fail later is refused now, by its key."""

import json
from dataclasses import asdict

import pytest
import torch
from torch import nn

from saccade.artifacts import ArtifactError, JsonObject
from saccade.data.batches import TokenBatches
from saccade.training import Checkpoint, Constant, Plateau, optimisers
from saccade.training.position import Position
from saccade.training.randomness import check_random_state, random_state
from saccade.training.state import check_optimiser, read_state
from saccade.training.stream import Stream


def optimiser(name="adam"):
    net = nn.Linear(3, 2)
    made = optimisers.create(name).create(net, learning_rate=0.1, weight_decay=0.5)
    net(torch.ones(4, 3)).sum().backward()
    made.step()
    return made


def stream():
    return Stream(TokenBatches([3] * 10, budget=9, seed=1))


def checkpoint():
    state = {
        "position": asdict(Position(step=7, scores={"loss": 1.0})),
        "schedule": Plateau().state_dict(),
        "stream": stream().state_dict(),
        "random": [random_state()],
    }
    return Checkpoint(7, {}, None, optimiser().state_dict(), json.loads(json.dumps(state)))


def read(one, schedule=None):
    return read_state(one, optimiser=optimiser(), schedule=schedule or Plateau(), stream=stream())


def test_what_was_saved_is_accepted():
    one = checkpoint()
    state = read(one)
    assert state.position == Position(step=7, scores={"loss": 1.0})
    assert state.schedule == {"level": 1.0, "waited": 0}
    assert state.random == one.state["random"]


def test_another_schedule_starts_from_its_beginning():
    one = checkpoint()
    assert read(one, Constant()).schedule == {}
    one.state["schedule"] = {}
    assert read(one, Plateau()).schedule == {"level": 1.0, "waited": 0}


DELETE = object()
CHANGES = [
    ("position", DELETE, "position is missing"),
    ("position", 7, "position is 7, not an object"),
    ("position.step", DELETE, "position.step is missing"),
    ("position.step", 8, "position.step is 8, but the checkpoint is that of 7"),
    ("position.step", 7.0, "position.step is 7.0, not a whole number"),
    ("position.batches", -1, "position.batches is -1"),
    ("position.waited", 10**13, "position.waited is 10000000000000"),
    ("position.seconds", float("nan"), "position.seconds is NaN"),
    ("position.seconds", "1", "position.seconds is .*, not a number"),
    ("position.step_seconds", "x", "position.step_seconds is .*, not a number or null"),
    ("position.pending", 1, "position.pending is 1, not true or false"),
    ("position.scores", [], "position.scores is a list, not an object or null"),
    ("position.scores", {"loss": "x"}, "position.scores.loss is .*, not a number"),
    ("position.best_step", "x", "position.best_step is .*, not a whole number or null"),
    ("position.validated", 9, "position.validated is after the last step"),
    ("position.extra", 9, "position.extra is not a key that belongs there"),
    ("schedule", [], "schedule is a list, not an object"),
    ("schedule.level", DELETE, "schedule.level is missing"),
    ("schedule.level", "1", "schedule.level is .*, not a number"),
    ("schedule.waited", 0.5, "schedule.waited is 0.5, not a whole number"),
    ("schedule.level", float("inf"), "schedule.level is Infinity"),
    ("stream.epoch", DELETE, "stream.epoch is missing"),
    ("stream.position", -1, "stream.position is -1"),
    ("stream.plan", 7, "stream.plan is 7, not a string"),
    ("random", {}, "random is an object, not a list"),
    ("random", [], "random is empty"),
    ("random", [7], r"random\[0\] is 7, not an object"),
]


@pytest.mark.parametrize(("key", "value", "complaint"), CHANGES, ids=range(len(CHANGES)))
def test_a_wrong_value_is_named(key, value, complaint):
    one = checkpoint()
    *path, last = key.split(".")
    place = one.state
    for name in path:
        place = place[name]
    if value is DELETE:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(ArtifactError, match=f"state.json is damaged: {complaint}"):
        read(one)


def spoil(state, *path, value):
    for name in path[:-1]:
        state = state[name]
    state[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("python",), []),
        (("python", 0), 4),
        (("python", 1), [0] * 624),
        (("python", 1, 0), -1),
        (("python", 1, 0), 2**32),
        (("python", 1, 624), 625),
        (("python", 1), 7),
        (("python", 2), "x"),
        (("numpy", 0), "PCG64"),
        (("numpy", 1), [0]),
        (("numpy", 1, 5), 0.5),
        (("numpy", 2), 10**9),
        (("numpy", 3), 2),
        (("numpy", 4), None),
        (("torch",), "00"),
        (("torch",), "zz" * 5056),
        (("torch",), "ff" * 5056),
        (("torch",), 7),
    ],
)
def test_a_random_state_that_cannot_be_restored_is_refused(path, value):
    state = json.loads(json.dumps(random_state()))
    check_random_state(JsonObject(state, "state.json", "random[0]"))
    spoil(state, *path, value=value)
    before = random_state()
    with pytest.raises(ArtifactError, match=rf"random\[0\].{path[0]}"):
        check_random_state(JsonObject(state, "state.json", "random[0]"))
    assert random_state() == before


@pytest.mark.parametrize("name", optimisers.names())
def test_the_state_of_each_optimiser_is_accepted(name):
    check_optimiser(optimiser(name), optimiser(name).state_dict())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda s: s["param_groups"].pop(), "it has 1 groups of parameters, the training has 2"),
        (lambda s: s["param_groups"][0].pop("betas"), "group 0 has no betas"),
        (lambda s: s["param_groups"][0].update(lr="x"), "lr of group 0 is x, not a number"),
        (lambda s: s["param_groups"][0].update(betas=[1]), r"betas of group 0 is \[1\], not a tuple"),
        (lambda s: s["param_groups"][0].update(params=[9]), "the parameters of group 0 differ"),
        (lambda s: s["state"].update({9: {}}), "values for parameter 9 of 2"),
        (lambda s: s["state"][0].pop("exp_avg"), "exp_avg of parameter 0 is missing"),
        (
            lambda s: s["state"][0].update(exp_avg=torch.zeros(5)),
            r"exp_avg of parameter 0 has the shape \(5,\), not \(2, 3\)",
        ),
        (lambda s: s["state"][0].update(exp_avg=torch.tensor(0.0)), r"exp_avg of parameter 0 has the shape \(\)"),
        (lambda s: s["state"][0].update(step=torch.zeros(2, 3)), "step of parameter 0 has the shape"),
        (lambda s: s["state"][0].update(step=7), "step of parameter 0 is not a tensor"),
    ],
)
def test_an_optimiser_state_that_does_not_fit_is_refused(change, complaint):
    state = optimiser().state_dict()
    change(state)
    with pytest.raises(ArtifactError, match=complaint):
        check_optimiser(optimiser(), state)
