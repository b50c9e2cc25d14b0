"""Averaged weights: over the whole training, from some validation on, or over the last checkpoints."""

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saccade.artifacts import placed, set_weights, weights_of


class Average:
    """An average of a model's weights; buffers that are not floating point are taken as they are."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] | None = None
        """None as long as there is no average."""

    def set(self, model: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Starts from given weights of a model, perhaps a saved average."""
        self.weights = {name: tensor.clone() for name, tensor in weights_of(model).items()}
        for name, tensor in self.weights.items():
            tensor.copy_(placed(weights[name], tensor))

    def update(self, model: nn.Module, step: int) -> None:
        """Takes in the weights after `step`, counted from 1."""
        raise NotImplementedError

    def observe(self, model: nn.Module, loss: float) -> None:
        """Called after each validation, with a figure that is lower for better weights."""

    def state_dict(self) -> dict[str, Any]:
        """What it knows besides the weights."""
        return {}

    def restore(self, model: nn.Module, average: Mapping[str, Tensor] | None, state: dict[str, Any]) -> None:
        """Continues from a saved average, if there was one, and what `state_dict` returned; the model is restored."""
        self.set(model, average or weights_of(model))

    @torch.no_grad()
    def _move(self, model: nn.Module, share: float) -> None:
        assert self.weights is not None
        for name, tensor in weights_of(model).items():
            if tensor.is_floating_point():
                self.weights[name].lerp_(tensor, share)
            else:
                self.weights[name].copy_(tensor)

    @contextlib.contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """A context in which the model has the averaged weights, if there are any."""
        if self.weights is None:
            yield
            return
        own = {name: tensor.clone() for name, tensor in weights_of(model).items()}
        set_weights(model, self.weights)
        try:
            yield
        finally:
            set_weights(model, own)


class MovingAverage(Average):
    r"""An exponential moving average of a model's weights.

    .. math:: a_t = d_t \, a_{t-1} + (1 - d_t) \, w_t, \qquad d_t = \min(d, (1 + t) / (10 + t))

    Early in training, the average follows quickly.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.set(model, weights_of(model))

    def update(self, model: nn.Module, step: int) -> None:
        self._move(model, 1.0 - min(self.decay, (1 + step) / (10 + step)))


class TriggeredAverage(Average):
    r"""The mean of all weights since validation stopped improving.

    .. math:: a_k = \frac{1}{k - T + 1} \sum_{i=T}^{k} w_i, \qquad
        T = \text{the first validation } t > n \text{ with } v_t > \min_{l < t - n} v_l

    Args:
        after: n, how many validations may pass without a better one.
        metric: the name of the figure v; a training that is resumed with another one begins to count anew.

    Reference:
        Merity et al. (2018), arXiv:1708.02182, section 3 (NT-ASGD); the condition is that of the released code.
    """

    def __init__(self, after: int, metric: str = "loss") -> None:
        super().__init__()
        self.after, self.metric = after, metric
        self.losses: list[float] = []
        self.count = 0

    def update(self, model: nn.Module, step: int) -> None:
        if self.weights is not None:
            self.count += 1
            self._move(model, 1.0 / self.count)

    def observe(self, model: nn.Module, loss: float) -> None:
        if self.weights is not None:
            return
        loss = loss if math.isfinite(loss) else sys.float_info.max
        earlier = self.losses[: max(0, len(self.losses) - self.after)]
        if earlier and loss > min(earlier):
            self.set(model, weights_of(model))
            self.count = 1
        self.losses.append(loss)

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "losses": self.losses, "metric": self.metric}

    def restore(self, model: nn.Module, average: Mapping[str, Tensor] | None, state: dict[str, Any]) -> None:
        self.count = state.get("count", 0)
        self.losses = list(state["losses"]) if state.get("metric") == self.metric else []
        if average is not None and self.count:
            self.set(model, average)


def mean_weights(several: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints; what is not floating point is taken from the last."""
    sums: dict[str, Tensor] = {}
    count = 0
    for weights in several:
        count += 1
        for name, tensor in weights.items():
            if tensor.is_floating_point():
                sums[name] = sums[name] + tensor.double() if count > 1 else tensor.double()
    if not count:
        raise ValueError("There are no checkpoints to average.")
    return {name: (sums[name] / count).to(tensor.dtype) if name in sums else tensor for name, tensor in weights.items()}
