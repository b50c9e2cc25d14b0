"""Labels of an input as a whole: one, several, or a grade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.tasks.contributing import Linked
from saccade.tasks.forms import ClassificationOptions, Form


class OneLabel(Form):
    """Exactly one class is right: each has a logit, and they compete."""

    name = "one"

    def losses(
        self, logits: Tensor, wanted: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
        losses = F.cross_entropy(logits, wanted, reduction="none", label_smoothing=smoothing)
        return losses if weights is None else losses * weights[0][wanted]

    def right(self, logits: Tensor, wanted: Tensor) -> Tensor:
        return (logits.argmax(1) == wanted).float()

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().softmax(1)

    def linked(self) -> Linked:
        names = self.label.names
        if len(names) == 2:  # the log-odds of each against the other
            return Linked(names, "logistic", torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))
        return Linked(names, "softmax", torch.eye(len(names)))


class SeveralLabels(Form):
    """Any number of classes can be right: each has its own logit and is decided separately."""

    name = "several"
    several = True

    def losses(
        self, logits: Tensor, wanted: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        if weights is not None:
            losses = losses * torch.where(wanted > 0, weights[0], weights[1])
        return losses.sum(1)

    def right(self, logits: Tensor, wanted: Tensor) -> Tensor:
        return ((logits > 0) == wanted).float().mean(1)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().sigmoid()

    def linked(self) -> Linked:
        return Linked(self.label.names, "logistic", torch.eye(len(self.label.names)))

    def decide(self, probabilities: Sequence[float], options: ClassificationOptions) -> tuple[Any, float]:
        each = zip(self.label.names, probabilities, strict=True)
        return [name for name, p in each if p >= options.threshold], min(max(p, 1.0 - p) for p in probabilities)


class OrderedLabels(Form):
    """One grade on a scale is right: each boundary between grades has a logit for being above it.

    Reference:
        Cheng et al. (2008), arXiv:0704.1028.
    """

    name = "ordered"

    def outputs(self) -> int:
        return super().outputs() - 1

    def losses(
        self, logits: Tensor, wanted: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(logits, above(wanted, logits.shape[1]), reduction="none")
        if weights is not None:
            losses = losses * weights[0][wanted].unsqueeze(1)
        return losses.sum(1)

    def right(self, logits: Tensor, wanted: Tensor) -> Tensor:
        return ((logits > 0).sum(1) == wanted).float()

    def probabilities(self, logits: Tensor) -> Tensor:
        # Those of being above each boundary may cross: differences below 0 count as 0.
        single = logits.float().sigmoid()
        edges = torch.cat([torch.ones_like(single[:, :1]), single, torch.zeros_like(single[:, :1])], dim=1)
        grades = (edges[:, :-1] - edges[:, 1:]).clamp(min=0.0)
        return grades / grades.sum(1, keepdim=True)

    def linked(self) -> Linked:
        names = [f"above {name}" for name in self.label.names[:-1]]
        return Linked(names, "logistic", torch.eye(len(names)))


def above(grades: Tensor, count: int) -> Tensor:
    """(items, count): 1.0 for each of the `count` boundaries that a grade is above."""
    return (grades.unsqueeze(1) > torch.arange(count, device=grades.device)).float()
