"""REINFORCE with a baseline that follows the rewards."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.distributions import Distribution
from saccade.losses import reinforce_loss


class MovingBaseline(nn.Module):
    """The score-function loss of samples, whose baseline is a moving average of the rewards of earlier batches.

    The first batch is its own baseline. Each call updates the average, which is saved with the model.
    """

    value: Tensor
    known: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(()))
        self.register_buffer("known", torch.zeros((), dtype=torch.bool))

    def forward(self, selection: Distribution, reward: Tensor, **options: Any) -> Tensor:
        """The loss of rewards (batch,); `options` are those of `reinforce_loss`."""
        before = torch.where(self.known, self.value, reward.detach().mean())
        total, after = reinforce_loss(selection, reward, before, **options)
        self.value.copy_(after)
        self.known.fill_(True)
        return total
