"""Schedules fit the known limit, and there are configurations for an hour on two cores."""

import pytest

from saccade.configuration import read_config, shipped
from saccade.runs.plan import Plan
from saccade.training import Trainer
from saccade.training.budget import describe_epochs
from saccade.training.position import Position
from saccade.training.schedules import schedules


def test_a_warm_up_that_the_limit_cannot_hold_is_shortened() -> None:
    schedule = schedules.create("inverse_sqrt", warmup=1000)
    assert schedule.factor(23, 230) == 1.0
    assert schedule.factor(23, None) == 0.023


@pytest.mark.parametrize("name", ["translation/rnnsearch-small", "translation/transformer-small"])
def test_small_configurations(name) -> None:
    assert name in shipped()
    plan = Plan(read_config(name))
    assert plan.trainer.max_minutes == 60
    assert plan.trainer.max_steps is None
    assert plan.trainer.schedule.ends  # with the minutes
    count = sum(parameter.numel() for parameter in plan.outline().parameters())
    assert count < 3_000_000


def test_epochs_are_a_limit_too() -> None:
    trainer = Plan(
        read_config("translation/rnnsearch-small") | {"trainer": {"max_epochs": 3, "schedule": "cosine"}}
    ).trainer
    last = Position().last_step(trainer, epoch=31)
    assert trainer.schedule.factor(93, last) == 0.0


def test_few_steps_on_little_data_are_announced(train) -> None:
    code, _, err = train("--trainer.max_epochs", "3", "--trainer.max_steps", "null", "--trainer.batch_tokens", "4096")
    lines = err.splitlines()
    assert code == 0, err
    remark = next(line for line in lines if line.startswith("3 epochs of 1 batch are 3 steps. "))
    assert "--trainer.max_epochs 200" in remark
    assert "--trainer.batch_tokens, now 4096" in remark
    loss = next(line for line in lines if line.startswith("step 3  epoch 3  loss "))
    assert lines.index(remark) < lines.index(loss)


@pytest.mark.parametrize(
    ("limits", "epoch", "remark"),
    [
        ({"max_epochs": 20, "max_steps": 30}, 1, "20 epochs of 1 batch are 20 steps, fewer than max_steps=30."),
        ({"max_epochs": 1}, 7, "1 epoch of 7 batches is 7 steps."),
        ({"max_epochs": 20, "max_steps": 20}, 1, None),
        ({"max_epochs": 20}, 10, None),
        ({"max_steps": 3}, 1, None),
    ],
)
def test_which_limits_deserve_a_remark(limits, epoch, remark) -> None:
    found = next(describe_epochs(Trainer(**limits), epoch=epoch), None)
    assert (found is None) if remark is None else found.startswith(remark)
