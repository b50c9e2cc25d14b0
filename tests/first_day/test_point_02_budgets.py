"""Schedules fit the known limit, and there are configurations for an hour on two cores."""

import pytest

from saccade.configuration import read_config, shipped
from saccade.runs.plan import Plan
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
