"""One position, already sampled."""

from dataclasses import dataclass

from torch import Tensor

from saccade.distributions.categorical import Categorical


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn(Categorical):
    """A categorical whose draw was made by the selection: a relaxed sample, or the expectation instead.

    Args:
        drawn: (*batch, queries, keys), the value of `draw`.
        expected: bool (*batch, queries, 1), which draws are the expectation; None if a selection does not say.
    """

    drawn: Tensor
    expected: Tensor | None = None

    @property
    def draw(self) -> Tensor:
        return self.drawn

    @property
    def picked(self) -> Tensor:
        return self.drawn
