"""Schedules: the factor of the learning rate at each step."""

import math
from typing import Any

from saccade.checks import check_count
from saccade.registry import Registry


class Schedule:
    """The factor of the learning rate at each step.

    A new schedule implements `factor`, which depends only on the step; one that follows the validation figures also
    implements `observe`, `state_dict` and `load_state_dict`.
    """

    steps: int | None = None
    """The last step of a schedule that ends; None means the end of the training, as far as it is known."""

    ends: bool = False
    """Whether the schedule needs to know the last step."""

    warmup: float = 0
    """The number of warm-up steps; below 1, the share of the training."""

    def factor(self, step: int, last: int | None = None) -> float:
        """The factor at `step`, counted from 1, of a training that is expected to end after step `last`."""
        raise NotImplementedError

    def fitted_warmup(self, last: int | None) -> int:
        """The warm-up in steps; a tenth of the training if it would take more than a third of it.

        If the end is not known yet, a share is taken of a thousand steps.
        """
        if 0 < self.warmup < 1:
            return max(1, round(self.warmup * (1000 if last is None else last)))
        return int(self.warmup) if last is None or self.warmup <= last // 3 else max(1, last // 10)

    def observe(self, improved: bool) -> None:
        """Called after each validation: whether the monitored figure was the best so far."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what `state_dict` returned."""


def _warm_up(step: int, warmup: int) -> float:
    return min(1.0, step / warmup) if warmup > 0 else 1.0


def _check_warmup(warmup: float) -> float:
    if warmup < 0 or (warmup > 1 and warmup != int(warmup)):
        raise ValueError(f"warmup must be a number of steps, 0 or more, or a share below 1, got {warmup}.")
    return warmup


schedules: Registry[Schedule] = Registry("schedule", base=Schedule, home="saccade.training")


@schedules.register("constant")
class Constant(Schedule):
    """The learning rate itself, after a linear warmup.

    Args:
        warmup: in how many steps the rate rises from zero.
    """

    def __init__(self, *, warmup: int = 0) -> None:
        self.warmup = _check_warmup(warmup)

    def factor(self, step: int, last: int | None = None) -> float:
        return _warm_up(step, self.fitted_warmup(last))


@schedules.register("noam")
class Noam(Schedule):
    r"""The rate of the Transformer: a linear warmup, then the inverse square root, scaled by the width of the model.

    .. math:: d^{-1/2} \min(t^{-1/2}, t \, w^{-3/2})

    It goes with a learning rate of about 1.

    Args:
        model_dim: d.
        warmup: w, in steps.

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, equation 3.
    """

    def __init__(self, *, model_dim: int, warmup: int = 4000) -> None:
        if model_dim < 1 or warmup < 1:
            raise ValueError(f"model_dim and warmup must be positive, got {model_dim} and {warmup}.")
        self.model_dim = model_dim
        self.warmup = warmup

    def factor(self, step: int, last: int | None = None) -> float:
        factor: float = self.model_dim**-0.5 * min(step**-0.5, step * self.fitted_warmup(last) ** -1.5)
        return factor


@schedules.register("inverse_sqrt")
class InverseSqrt(Schedule):
    r"""A linear warmup to the learning rate, then the inverse square root of the step.

    .. math:: \min(t / w, \sqrt{w / t})

    Args:
        warmup: w, in steps.
    """

    def __init__(self, *, warmup: int = 4000) -> None:
        if warmup < 1:
            raise ValueError(f"warmup must be positive, got {warmup}.")
        self.warmup = warmup

    def factor(self, step: int, last: int | None = None) -> float:
        warmup = self.fitted_warmup(last)
        return min(step / warmup, math.sqrt(warmup / step))


class _Ending(Schedule):
    ends = True

    def __init__(self, *, warmup: float = 0, steps: int | None = None, floor: float = 0.0) -> None:
        self.warmup = _check_warmup(warmup)
        if steps is not None and steps < 1:
            raise ValueError(f"steps must be positive, got {steps}.")
        if not 0.0 <= floor <= 1.0:
            raise ValueError(f"floor is a fraction of the learning rate, between 0 and 1, got {floor}.")
        self.steps = steps
        self.floor = floor

    def factor(self, step: int, last: int | None = None) -> float:
        end = self.steps or last
        warmup = int(self.warmup) if self.steps is not None and self.warmup >= 1 else self.fitted_warmup(end)
        if step <= warmup or end is None:  # with a limit in minutes, the end is known after some steps
            return _warm_up(step, warmup)
        done = min(1.0, (step - warmup) / max(1, end - warmup))
        return self.floor + (1.0 - self.floor) * self.shape(done)

    def shape(self, done: float) -> float:
        raise NotImplementedError


@schedules.register("cosine")
class Cosine(_Ending):
    r"""A linear warmup, then half a cosine from the learning rate down to a fraction of it.

    .. math:: f + (1 - f) (1 + \cos(\pi \, (t - w) / (T - w))) / 2

    Args:
        warmup: w, in steps, or below 1 as a share of T.
        steps: T; default: the end of the training. The rate stays at its floor after it.
        floor: f, the fraction of the learning rate that it ends with.

    Reference:
        Loshchilov and Hutter (2017), arXiv:1608.03983, without restarts.
    """

    def shape(self, done: float) -> float:
        return (1.0 + math.cos(math.pi * done)) / 2.0


@schedules.register("linear")
class Linear(_Ending):
    """A linear warmup, then a straight line from the learning rate down to a fraction of it.

    Args:
        warmup: the number of steps in which the rate rises from zero, or below 1, the share of all steps.
        steps: where it ends; default: the end of the training. The rate stays at its floor after it.
        floor: the fraction of the learning rate that it ends with.
    """

    def shape(self, done: float) -> float:
        return 1.0 - done


@schedules.register("plateau")
class Plateau(Schedule):
    """Lowers the rate whenever the monitored validation figure has not improved for a while.

    Args:
        decay: what the rate is multiplied by.
        patience: after how many validations in a row without improvement; 0 = after the first.
        floor: the smallest fraction of the learning rate.
        warmup: in how many steps the rate rises from zero.
    """

    def __init__(self, *, decay: float = 0.5, patience: int = 0, floor: float = 1e-3, warmup: int = 0) -> None:
        if not 0.0 < decay < 1.0:
            raise ValueError(f"decay must be between 0 and 1, got {decay}.")
        check_count("patience", patience, least=0)
        self.decay = decay
        self.patience = patience
        self.floor = floor
        self.warmup = _check_warmup(warmup)
        self._level = 1.0
        self._waited = 0

    def factor(self, step: int, last: int | None = None) -> float:
        return self._level * _warm_up(step, self.fitted_warmup(last))

    def observe(self, improved: bool) -> None:
        self._waited = 0 if improved else self._waited + 1
        if self._waited > self.patience:
            self._level = max(self.floor, self._level * self.decay)
            self._waited = 0

    def state_dict(self) -> dict[str, Any]:
        return {"level": self._level, "waited": self._waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._level, self._waited = state["level"], state["waited"]
