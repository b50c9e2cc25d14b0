"""Numbers that are not finite."""

from __future__ import annotations

import math

from torch import Tensor


class NotFiniteError(ValueError):
    """A score that may have weight is not finite."""


def surely_finite(tensor: Tensor) -> bool:
    """Whether one sum tells that all values are finite; if not, they may still be: the sum may have overflowed.

    The sum is judged by Python: an operator on one number costs more than the sum itself.
    """
    return math.isfinite(tensor.detach().sum().item())
