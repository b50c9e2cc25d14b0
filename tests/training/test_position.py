"""Which limit ends a training, and how its user is told."""

from pathlib import Path

import pytest

from saccade.training import Trainer
from saccade.training.position import Position, describe_end, describe_going_on

TRAINER = Trainer(max_steps=13, max_epochs=7, max_minutes=3.0, patience=5, metric="bleu")


@pytest.mark.parametrize(
    ("position", "epochs", "late", "reason"),
    [
        (Position(step=12, waited=4), 6, False, None),
        (Position(step=13, waited=4), 6, False, "max_steps"),
        (Position(step=12, waited=4), 7, False, "max_epochs"),
        (Position(step=12, waited=5), 6, False, "patience"),
        (Position(step=12, waited=4), 6, True, "max_minutes"),
    ],
)
def test_the_first_limit_that_is_reached(position, epochs, late, reason) -> None:
    assert position.reason_to_stop(TRAINER, epochs=epochs, late=late) == reason
    if reason is not None:
        assert describe_end(reason, TRAINER).startswith(f"{reason}={getattr(TRAINER, reason)}")
        (line,) = describe_going_on(reason, TRAINER, position, Path("runs/a"))
        setting, _, value = line.partition("saccade train --resume runs/a --trainer.")[2].partition(" ")
        assert (setting, float(value)) == (reason, 2.0 * getattr(TRAINER, reason))


def test_going_on_beyond_a_limit_that_was_passed_long_ago() -> None:
    (line,) = describe_going_on("max_steps", TRAINER, Position(step=1000), Path("my runs/a"))
    assert line.endswith("saccade train --resume 'my runs/a' --trainer.max_steps 2000")


def test_another_limit_that_would_end_it_again_is_raised_as_well() -> None:
    trainer = Trainer(max_steps=20, max_epochs=20)
    (line,) = describe_going_on("max_steps", trainer, Position(step=20), Path("a"), epoch=1)
    assert line.endswith("--trainer.max_steps 40 --trainer.max_epochs 40")
    (line,) = describe_going_on("max_epochs", trainer, Position(step=20), Path("a"), epoch=1)
    assert line.endswith("--trainer.max_epochs 40 --trainer.max_steps 40")
    (line,) = describe_going_on("max_steps", trainer, Position(step=20), Path("a"), epoch=7)
    assert line.endswith("--trainer.max_steps 40")


def test_limits_that_are_not_set_end_nothing() -> None:
    trainer = Trainer(max_epochs=2)
    assert Position(step=999, waited=999).reason_to_stop(trainer, epochs=1, late=False) is None


def test_what_is_nearest_to_its_end_says_how_much_is_done() -> None:
    position = Position(step=3, seconds=45.0, batches=11)
    assert position.fraction_done(TRAINER, epoch=11) == pytest.approx(45 / 180)
    assert position.fraction_done(TRAINER, epoch=3) == pytest.approx(11 / 21)
    assert Position(step=26).fraction_done(TRAINER, epoch=3) == 1.0


def test_patience_names_what_did_not_become_better() -> None:
    assert describe_end("patience", TRAINER) == "patience=5: no better bleu in 5 validations"


def test_a_loss_that_still_falls_is_told() -> None:
    falling = Position(scores={"loss": 1.1, "bleu": 0.0}, best_scores={"loss": 1.7, "bleu": 0.0})
    loss, command = describe_going_on("patience", TRAINER, falling, Path("a"))
    assert "1.7, now 1.1" in loss
    assert command.endswith("--trainer.patience 10 --trainer.metric loss")
    rising = Position(scores={"loss": 1.9, "bleu": 0.0}, best_scores={"loss": 1.7, "bleu": 0.0})
    (command,) = describe_going_on("patience", TRAINER, rising, Path("a"))
    assert command.endswith("--trainer.patience 10")


def test_another_figure_begins_to_wait_anew() -> None:
    position = Position(best_score=0.0, best_scores={"loss": 1.7, "bleu": 0.0}, waited=5)
    position.judge_by("bleu")
    assert (position.best_score, position.waited) == (0.0, 5)
    position.judge_by("loss")
    assert (position.best_score, position.waited) == (1.7, 0)
    position.judge_by("ter")  # which was not measured
    assert (position.best_score, position.waited) == (None, 0)


def test_a_time_limit_of_a_few_steps_gets_a_remark() -> None:
    trainer = Trainer(max_minutes=0.2)
    remark, command = describe_going_on("max_minutes", trainer, Position(step=1), Path("a"))
    assert remark.startswith("0.2 minutes allowed only 1 step, so the model")
    assert "more minutes" in remark
    assert "-small" in remark
    assert command == "To continue beyond this limit: saccade train --resume a --trainer.max_minutes 0.4"
    assert len(describe_going_on("max_minutes", trainer, Position(step=300), Path("a"))) == 1
