import math

import pytest

from saccade.training import Constant, Cosine, InverseSqrt, Linear, Noam, Plateau, schedules


def test_noam_is_the_equation_of_the_paper():
    noam = Noam(model_dim=512, warmup=4000)
    for step in (1, 37, 3999, 4000, 4001, 100_000):
        assert noam.factor(step) == pytest.approx(512**-0.5 * min(step**-0.5, step * 4000**-1.5), rel=1e-12)
    assert max(range(1, 9001, 13), key=noam.factor) == pytest.approx(4000, abs=13)


def test_inverse_sqrt_peaks_at_one_and_is_noam_up_to_a_constant():
    schedule, noam = InverseSqrt(warmup=53), Noam(model_dim=17, warmup=53)
    assert schedule.factor(53) == 1.0
    ratios = {round(schedule.factor(step) / noam.factor(step), 9) for step in (1, 11, 53, 54, 1001)}
    assert len(ratios) == 1


def test_constant_rises_and_stays():
    assert [Constant(warmup=4).factor(step) for step in (1, 2, 4, 5, 99)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    assert Constant().factor(1) == 1.0


@pytest.mark.parametrize("kind", [Cosine, Linear])
def test_ending_schedules_rise_fall_to_their_floor_and_stay(kind):
    schedule = kind(warmup=5, steps=25, floor=0.1)
    assert schedule.factor(1) == pytest.approx(0.2)
    assert schedule.factor(5) == 1.0
    assert schedule.factor(15) == pytest.approx(0.55)
    assert schedule.factor(25) == pytest.approx(0.1)
    assert schedule.factor(1000) == pytest.approx(0.1)
    factors = [schedule.factor(step) for step in range(5, 26)]
    assert factors == sorted(factors, reverse=True)
    assert kind().factor(100, last=100) == pytest.approx(0.0)
    assert kind(steps=50).factor(50, last=100) == pytest.approx(0.0), "its own steps come first"


def test_cosine_is_half_a_cosine():
    assert Cosine(steps=8).factor(2) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


def test_plateau_waits_for_its_patience():
    plateau = Plateau(decay=0.5, patience=1, floor=0.2)
    seen = []
    for improved in (True, False, True, False, False, False, False, False, False):
        plateau.observe(improved)
        seen.append(plateau.factor(10))
    assert seen == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.2]


def test_plateau_goes_on_from_its_state():
    plateau, other = Plateau(patience=1), Plateau(patience=1)
    plateau.observe(False)
    other.load_state_dict(plateau.state_dict())
    for schedule in (plateau, other):
        schedule.observe(False)
    assert plateau.factor(1) == other.factor(1) == 0.5


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Constant(warmup=-1), "warmup"),
        (lambda: Noam(model_dim=0), "model_dim"),
        (lambda: InverseSqrt(warmup=0), "warmup"),
        (lambda: Cosine(steps=0), "steps"),
        (lambda: Cosine(floor=2.0), "floor"),
        (lambda: Plateau(decay=1.0), "decay"),
        (lambda: Plateau(patience=-1), "patience"),
    ],
)
def test_impossible_schedules_are_refused(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make()


def test_all_have_short_names():
    assert schedules.names() == ["constant", "cosine", "inverse_sqrt", "linear", "noam", "plateau"]


def test_a_warmup_that_would_fill_the_training_is_shortened():
    schedule = InverseSqrt(warmup=1000)
    assert schedule.fitted_warmup(None) == schedule.fitted_warmup(3000) == 1000
    assert schedule.fitted_warmup(234) == 23
    factors = [schedule.factor(step, 234) for step in range(1, 235)]
    assert factors.index(max(factors)) + 1 == 23
    assert max(factors) == 1.0


def test_an_ending_schedule_without_a_known_end_only_warms_up():
    schedule = Cosine(warmup=10)
    assert [schedule.factor(step) for step in (5, 10, 15)] == [0.5, 1.0, 1.0]
    assert schedule.factor(90, 100) < 0.1


def test_a_warmup_below_one_is_a_share_of_the_training():
    schedule = Linear(warmup=0.1)
    assert schedule.factor(10, 200) == pytest.approx(0.5)
    assert schedule.factor(20, 200) == pytest.approx(1.0)
    assert schedule.factor(110, 200) == pytest.approx(0.5)
    assert schedule.factor(50) == pytest.approx(0.5)  # of a thousand steps, as long as the end is unknown
    assert Linear(warmup=0.1, steps=40).factor(2, 200) == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"share below 1, got 1\.5"):
        Linear(warmup=1.5)
