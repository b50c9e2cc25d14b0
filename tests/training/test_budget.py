"""What the limits of a training mean at its speed."""

from saccade.training import Trainer
from saccade.training.budget import BUDGET_STEPS, describe_budget, speed_is_known
from saccade.training.position import Position


def test_minutes_become_steps_at_the_speed_of_the_first_ones():
    position = Position(step=BUDGET_STEPS, seconds=41.0, step_seconds=2.05)
    assert position.expected_steps(Trainer(max_minutes=8)) == round(8 * 60 / 2.05) == 234
    assert position.expected_steps(Trainer(max_minutes=16)) == 468  # a resumed training may get more time
    assert position.expected_steps(Trainer(max_steps=100)) is None
    assert Position().expected_steps(Trainer(max_minutes=8)) is None


def test_a_resumed_training_with_more_time_does_not_stay_at_the_end_of_its_schedule():
    position = Position(step=234, seconds=480.0, step_seconds=2.05)
    short, long = (Trainer(max_minutes=minutes, schedule="cosine") for minutes in (8, 16))
    assert short.schedule.factor(235, position.last_step(short, epoch=100)) == 0.0
    assert 0.4 < long.schedule.factor(235, position.last_step(long, epoch=100)) < 0.6


def test_a_budget_in_minutes_is_told_in_steps_with_its_warmup():
    trainer = Trainer(max_minutes=8, schedule="inverse_sqrt")
    position = Position(step=BUDGET_STEPS, seconds=41.0, step_seconds=2.05)
    said = "\n".join(describe_budget(trainer, position, epoch=100))
    assert "8 minutes are about 234 steps" in said
    assert "2.3 passes over the data" in said
    assert "The warm-up is 23 steps instead of 4,000" in said
    several = Trainer(max_minutes=8, accumulate=4)  # batches in each step
    assert "9.4 passes over the data" in "\n".join(describe_budget(several, position, epoch=100))


def test_steps_that_take_hours_are_told_in_hours():
    trainer = Trainer(max_steps=20_000)
    slow = Position(step=BUDGET_STEPS, seconds=30.0, step_seconds=1.5)
    quick = Position(step=BUDGET_STEPS, seconds=1.0, step_seconds=0.05)
    assert "20,000 steps take about 8:20:00" in "\n".join(describe_budget(trainer, slow, epoch=100))
    assert not list(describe_budget(trainer, quick, epoch=100))


def test_the_nearest_limit_is_the_last_step():
    trainer = Trainer(max_steps=100, max_minutes=8)
    assert Position().last_step(trainer, epoch=31) == 100
    assert Position(step_seconds=2.05).last_step(trainer, epoch=31) == 100
    assert Position(step_seconds=9.6).last_step(trainer, epoch=31) == 50
    assert Position().last_step(Trainer(patience=3), epoch=31) is None
    assert Position().last_step(Trainer(max_steps=100, max_epochs=3), epoch=31) == 93
    assert Position().last_step(Trainer(max_epochs=3, accumulate=7), epoch=31) == 15  # the last of each epoch is small


def test_one_minute():
    position = Position(step=BUDGET_STEPS, seconds=41.0, step_seconds=2.05)
    (said,) = describe_budget(Trainer(max_minutes=1), position, epoch=31)
    assert said.startswith("1 minute is about 29 steps at this speed")


def test_the_speed_is_known_early_where_time_allows_few_steps():
    trainer = Trainer(max_minutes=1)
    assert not speed_is_known(trainer, Position(step=4, seconds=5.9))
    assert speed_is_known(trainer, Position(step=4, seconds=6.0))
    assert not speed_is_known(trainer, Position(step=2, seconds=50.0))  # the first ones are slow
    assert speed_is_known(trainer, Position(step=BUDGET_STEPS, seconds=0.1))
    assert not speed_is_known(Trainer(max_steps=9), Position(step=4, seconds=50.0))
