"""Token embeddings."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers.positions import LearnedPositions, SinusoidalPositions
from saccade.registry import nearest


class TokenEmbedding(nn.Module):
    r"""A vector for each token, with positions if asked for.

    .. math:: x_t = \sqrt{d}\, E_{y_t} + p_t

    The factor is there with `scale`: vectors that also serve as output weights start small.

    Shapes:
        token ids (*batch, length) -> (*batch, length, dim).
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        dim: int,
        scale: bool = False,
        positions: Literal["sinusoidal", "learned"] | None = None,
        max_length: int = 512,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be from 0 to less than 1, got {dropout}.")
        check_count("vocab_size", vocab_size)
        check_count("dim", dim)
        self.table = nn.Embedding(vocab_size, dim)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        self.factor = dim**0.5 if scale else 1.0
        self.positions: nn.Module | None = None
        if positions == "sinusoidal":
            self.positions = SinusoidalPositions(dim=dim)
        elif positions == "learned":
            self.positions = LearnedPositions(dim=dim, max_length=max_length)
        elif positions is not None:
            raise ValueError(f"Unknown positions {positions!r}.{nearest(positions, ('sinusoidal', 'learned'))}")
        self.dropout = dropout

    @property
    def weight(self) -> nn.Parameter:
        weight = self.table.weight
        assert isinstance(weight, nn.Parameter)
        return weight

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """`start` is the position of the first token."""
        embedded: Tensor = self.table(tokens)
        if self.factor != 1.0:
            embedded = embedded * self.factor
        if self.positions is not None:
            embedded = embedded + self.positions(tokens.shape[-1], start)
        return F.dropout(embedded, self.dropout, self.training)
