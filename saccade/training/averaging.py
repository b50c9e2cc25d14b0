"""Averaged weights: a moving average kept while training, or the mean of the last checkpoints."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from saccade.artifacts import placed, set_weights, weights_of


class MovingAverage:
    r"""An exponential moving average of a model's weights.

    .. math:: a_t = d_t \, a_{t-1} + (1 - d_t) \, w_t, \qquad d_t = \min(d, (1 + t) / (10 + t))

    The average of a young training follows quickly; buffers that are not floating point are taken as they are.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: tensor.clone() for name, tensor in weights_of(model).items()}

    def set(self, weights: Mapping[str, Tensor]) -> None:
        """Starts from a saved average."""
        for name, tensor in self.weights.items():
            tensor.copy_(placed(weights[name], tensor))

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Moves towards the weights after `step`, counted from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, tensor in weights_of(model).items():
            if tensor.is_floating_point():
                self.weights[name].lerp_(tensor, 1.0 - decay)
            else:
                self.weights[name].copy_(tensor)

    @contextlib.contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """The model has the average as its weights, and then its own again."""
        own = {name: tensor.clone() for name, tensor in weights_of(model).items()}
        set_weights(model, self.weights)
        try:
            yield
        finally:
            set_weights(model, own)


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
