"""A learned bias for each distance."""

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.scores.base import scores
from saccade.scores.position_bias import PositionBias


@scores.register("learned_relative_bias")
class LearnedRelativeBias(PositionBias):
    r"""A learned bias for each clipped distance and each head.

    .. math:: s_{hij} = b_{h,\, \mathrm{clip}(j - i,\, -D,\, D)}

    D is `max_distance`; b starts at zero.

    Shapes:
        query (*batch, queries, any) with heads as the last batch dimension if there are several, keys (*batch, keys,
        any) -> scores (*batch, queries, keys).

    Reference:
        Shaw et al. (2018), arXiv:1803.02155, section 3.2, clip distances the same way, but learn a vector for each
        instead of a number.
    """

    def __init__(self, *, max_distance: int = 16, num_heads: int = 1) -> None:
        super().__init__(num_heads=num_heads)
        check_count("max_distance", max_distance, least=0)
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.zeros(num_heads, 2 * max_distance + 1))

    def at(self, distance: Tensor) -> Tensor:
        return self.look_up(self.table, distance.clamp(-self.max_distance, self.max_distance) + self.max_distance)
