"""A learned bias for each bucket of distances."""

import math

import torch
from torch import Tensor, nn

from saccade.scores.base import scores
from saccade.scores.position_bias import PositionBias


@scores.register("t5_relative_bias")
class T5RelativeBias(PositionBias):
    r"""A learned bias for each bucket of distances and each head; buckets widen with distance from the query.

    .. math:: s_{hij} = b_{h,\, \mathrm{bucket}(j - i)}, \qquad
        \mathrm{bucket}(n) = \begin{cases} n & n < E \\
        \min\left(E + \left\lfloor \frac{\log(n / E)}{\log(D / E)} (N - E) \right\rfloor, N - 1\right) & n \ge E
        \end{cases}

    N is `num_buckets`, E = N / 2, D is `max_distance`. If `bidirectional`, each direction has N / 2 buckets, with keys
    after the query in the second half; otherwise all buckets are for keys before the query, and keys after it share
    the bucket for distance 0. b starts at zero.

    Shapes:
        query (*batch, queries, any) with heads as the last batch dimension if there are several, keys (*batch, keys,
        any) -> scores (*batch, queries, keys).

    Reference:
        Raffel et al. (2020), arXiv:1910.10683, section 2.1; buckets as in the released code.
    """

    def __init__(
        self, *, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True, num_heads: int = 1
    ) -> None:
        super().__init__(num_heads=num_heads)
        one_way = num_buckets // 2 if bidirectional else num_buckets
        if one_way < 2 or (bidirectional and num_buckets % 2):
            raise ValueError(
                f"num_buckets must be 2 or more, and if bidirectional an even number, 4 or more, got {num_buckets}."
            )
        if max_distance <= one_way // 2:
            raise ValueError(
                f"max_distance must be above {one_way // 2}, the number of distances with their own bucket for "
                f"num_buckets={num_buckets}, got {max_distance}."
            )
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.table = nn.Parameter(torch.zeros(num_heads, num_buckets))

    def at(self, distance: Tensor) -> Tensor:
        return self.look_up(self.table, self.bucket(distance))

    def bucket(self, distance: Tensor) -> Tensor:
        """The bucket of each distance key - query."""
        if self.bidirectional:
            one_way = self.num_buckets // 2
            return self._bucket_of_size(distance.abs(), one_way) + (distance > 0) * one_way
        return self._bucket_of_size((-distance).clamp(min=0), self.num_buckets)

    def _bucket_of_size(self, size: Tensor, buckets: int) -> Tensor:
        exact = buckets // 2
        # Single precision, like the published models: at a boundary another precision may round differently.
        ratio = (size.clamp(min=1).float() / exact).log() / math.log(self.max_distance / exact)
        wide = exact + (ratio * (buckets - exact)).long()
        return torch.where(size < exact, size, wide.clamp(max=buckets - 1))
