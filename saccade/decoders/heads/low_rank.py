"""A linear output head of low rank."""

from __future__ import annotations

from torch import Tensor, nn

from saccade.decoders.heads.base import OutputHead
from saccade.decoders.heads.linear import LinearHead
from saccade.kernels.cross_entropy import CrossEntropy


class LowRankHead(OutputHead):
    r"""A linear map whose matrix is a product of two smaller ones.

    .. math:: W_l W_r x + b

    Shapes:
        features (*, input_dim) -> logits (*, vocab_size).

    Reference:
        Cho et al. (2014), arXiv:1406.1078, appendix A.1.2.
    """

    def __init__(self, *, input_dim: int, vocab_size: int, rank: int) -> None:
        super().__init__()
        self.inner_proj = nn.Linear(input_dim, rank, bias=False)
        self.outer = LinearHead(input_dim=rank, vocab_size=vocab_size)

    def logits(self, features: Tensor) -> Tensor:
        return self.outer.logits(self.inner_proj(features))

    def loss(self, features: Tensor, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        return self.outer.loss(self.inner_proj(features), targets, smoothing=smoothing, first=first)

    def best(self, features: Tensor, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        return self.outer.best(self.inner_proj(features), count, without)
