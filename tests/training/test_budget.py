"""What the limits of a training mean at its speed."""

from saccade.training import Trainer
from saccade.training.budget import BUDGET_STEPS, describe_budget, expected_steps
from saccade.training.position import Position


def test_minutes_become_steps_at_the_speed_of_the_first_ones():
    trainer = Trainer(max_minutes=8)
    assert expected_steps(trainer, seconds=41.0) == round(8 * 60 * BUDGET_STEPS / 41.0) == 234
    assert expected_steps(Trainer(max_steps=100), seconds=41.0) is None


def test_a_budget_in_minutes_is_told_in_steps_with_its_warmup():
    trainer = Trainer(max_minutes=8, schedule="inverse_sqrt")
    position = Position(step=BUDGET_STEPS, seconds=41.0, expected_steps=234)
    said = "\n".join(describe_budget(trainer, position, epoch=100))
    assert "8 minutes are about 234 steps" in said
    assert "2.3 passes over the data" in said
    assert "The warm-up is 23 steps instead of 4,000" in said


def test_steps_that_take_hours_are_told_in_hours():
    trainer = Trainer(max_steps=20_000)
    slow = Position(step=BUDGET_STEPS, seconds=30.0)
    quick = Position(step=BUDGET_STEPS, seconds=1.0)
    assert "20,000 steps take about 8:20:00" in "\n".join(describe_budget(trainer, slow, epoch=100))
    assert not list(describe_budget(trainer, quick, epoch=100))


def test_the_nearest_limit_is_the_last_step():
    trainer = Trainer(max_steps=100, max_minutes=8)
    assert Position().last_step(trainer) == 100
    assert Position(expected_steps=234).last_step(trainer) == 100
    assert Position(expected_steps=50).last_step(trainer) == 50
    assert Position().last_step(Trainer(patience=3)) is None
