"""One position, already drawn."""

from dataclasses import dataclass

from torch import Tensor

from saccade.distributions.categorical import Categorical


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn(Categorical):
    """A categorical whose selection said how to draw: a relaxed sample, or the expectation in its place.

    Args:
        drawn: (*batch, queries, keys): what `draw` gives.
    """

    drawn: Tensor

    @property
    def draw(self) -> Tensor:
        return self.drawn
