"""What is chosen of the classes: one, several, or a grade; and one for each word."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Form = Literal["one", "several", "ordered", "tags"]


def exclusive(form: Form) -> bool:
    """Whether exactly one of the classes is right, so that each has a logit and they compete."""
    return form in ("one", "tags")


def losses_of(form: Form, logits: Tensor, wanted: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """(items,): the loss of each."""
    if exclusive(form):
        return F.cross_entropy(logits, wanted, reduction="none", label_smoothing=smoothing)
    targets = wanted if form == "several" else above(wanted, logits.shape[1])
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(1)


def right_share(form: Form, logits: Tensor, wanted: Tensor) -> Tensor:
    """(items,): 1.0 where the decision is right; of several labels, how many of the decisions are."""
    if exclusive(form):
        return (logits.argmax(1) == wanted).float()
    above_half = logits > 0
    return (above_half == wanted).float().mean(1) if form == "several" else (above_half.sum(1) == wanted).float()


def probabilities_of(form: Form, logits: Tensor) -> Tensor:
    """(items, classes); ordered labels have one logit less than there are classes."""
    if exclusive(form):
        return logits.float().softmax(1)
    single = logits.float().sigmoid()
    if form == "several":
        return single
    # Above each grade, which may cross: probabilities of grades are differences, never below 0.
    edges = torch.cat([torch.ones_like(single[:, :1]), single, torch.zeros_like(single[:, :1])], dim=1)
    grades = (edges[:, :-1] - edges[:, 1:]).clamp(min=0.0)
    return grades / grades.sum(1, keepdim=True)


def above(grades: Tensor, count: int) -> Tensor:
    """(items, count): 1.0 for each of the `count` boundaries that a grade is above."""
    return (grades.unsqueeze(1) > torch.arange(count, device=grades.device)).float()
