"""Softmax selection."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.distributions import Categorical, Distribution
from saccade.selections.base import Selection, selections


def softmax(scores: Tensor, dim: int = -1, mask: Tensor | None = None) -> Tensor:
    """`torch.softmax` with a bool mask; a row with no attendable entry gives zeros and finite gradients."""
    if mask is None:
        return torch.softmax(scores, dim)
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), dim).masked_fill(~mask, 0.0)


@selections.register("softmax")
class Softmax(Selection):
    r"""Exponentiates and normalises: every attendable position gets some weight.

    .. math:: p_j = \frac{\exp(s_j / \tau)}{\sum_l \exp(s_l / \tau)}

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, equation 6. A temperature below one sharpens the weights
        (Chorowski et al. 2015, arXiv:1506.07503, section 2.3, with inverse temperature beta).
    """

    def __init__(self, *, temperature: float = 1.0, learn_temperature: bool = False) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        self.temperature = nn.Parameter(torch.tensor(float(temperature))) if learn_temperature else temperature

    @property
    def plain_softmax(self) -> bool:  # type: ignore[override]
        """Whether there is no temperature."""
        return not isinstance(self.temperature, nn.Parameter) and self.temperature == 1.0

    @property
    def segment_mapping(self) -> str | None:  # type: ignore[override]
        """Whether there is no temperature."""
        return "softmax" if self.plain_softmax else None

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        # Masked scores may be anything: keep them out of the gradient of the temperature.
        logits = scores if self.plain_softmax else scores.masked_fill(~mask, 0.0) / self.temperature
        return Categorical(softmax(logits, mask=mask), logits=logits, training=self.training)
