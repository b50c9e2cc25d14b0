"""Attention with linear biases."""

import torch
from torch import Tensor

from saccade.scores.base import scores
from saccade.scores.position_bias import PositionBias


def alibi_slopes(num_heads: int) -> list[float]:
    """One slope per head: 2^(-8/n), 2^(-16/n), ... for n heads, n a power of two.

    For other n: the slopes for the next lower power of two, then every other slope for the next higher one.
    """
    below = 1 << (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * i / below) for i in range(1, below + 1)]
    return slopes + [2.0 ** (-4.0 * i / below) for i in range(1, 2 * (num_heads - below), 2)]


@scores.register("alibi")
class ALiBi(PositionBias):
    r"""Penalises each score in proportion to the distance; nothing is learned.

    .. math:: s_{hij} = -m_h\, |i - j|

    m_h is a fixed slope: a geometric sequence over the heads. The paper attends only backwards, where |i - j| = i - j.

    Shapes:
        query (*batch, queries, any) with heads as the last batch dimension if there are several, keys (*batch, keys,
        any) -> scores (*batch, queries, keys).

    Reference:
        Press et al. (2022), arXiv:2108.12409, section 3; slopes for other numbers of heads as in the released code.
    """

    slopes: Tensor

    def __init__(self, *, num_heads: int = 1) -> None:
        super().__init__(num_heads=num_heads)
        self.register_buffer("slopes", torch.tensor(alibi_slopes(num_heads)), persistent=False)

    def at(self, distance: Tensor) -> Tensor:
        # Half precision cannot represent all integers above 256: round the product, not the distance.
        slopes = self.slopes.to(torch.promote_types(self.slopes.dtype, torch.float32))
        return -distance.abs() * (slopes if self.num_heads == 1 else slopes[:, None, None])
