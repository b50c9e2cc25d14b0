"""One position in a chunk."""

from dataclasses import dataclass

from torch import Tensor

from saccade.distributions.categorical import Categorical


@dataclass(frozen=True, eq=False, kw_only=True)
class Chunked(Categorical):
    """A categorical over the positions of a chunk, with the distribution of where the chunk ends.

    Args:
        ends: (*batch, queries, keys): the probability that the chunk ends at a position.
    """

    ends: Tensor
