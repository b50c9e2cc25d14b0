"""DeepCoNN: deep cooperative neural networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.layers import FactorisationMachine, TextConvolution, TokenEmbedding
from saccade.layers.gathering import pack
from saccade.models.base import models
from saccade.models.reviewed import ReviewedModel


@models.register("deep_conn")
class DeepCoNN(ReviewedModel):
    r"""Reads all reviews by the user as one text, all reviews of the item as another, and combines both.

    .. math:: x_s = \mathrm{relu}(W_s \max_t \mathrm{relu}(\mathrm{conv}(E_s)_t) + b_s), \qquad
        y = \mathrm{FM}([x_u; x_i])

    A side without reviews is an empty text.

    Shapes:
        as `ReviewedModel`.

    Reference:
        Zheng et al. (2017), arXiv:1701.04783, section 2: 100 filters of width 3, and 50 factors for each side.

    Args:
        filters: the number of filters of a side.
        width: of the windows, in words.
        hidden_dim: features of x_u and x_i.
        factors: of the factorisation machine.
        dropout: applied to embeddings and to x_u and x_i.
        biases, penalty: add biases of user and item, which the paper does not; their squares cost `penalty`.
    """

    def __init__(
        self,
        *,
        users: int,
        items: int,
        vocab: int,
        reviews: int,
        words: int,
        embedding_dim: int = 100,
        filters: int = 100,
        width: int = 3,
        hidden_dim: int = 50,
        factors: int = 10,
        dropout: float = 0.5,
        biases: bool = False,
        penalty: float = 0.1,
    ) -> None:
        super().__init__(users=users, items=items, biases=biases, penalty=penalty)
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=embedding_dim, dropout=dropout)
        self.user, self.item = (
            TextConvolution(input_dim=embedding_dim, filters=filters, widths=(width,)) for _ in range(2)
        )
        self.user_proj, self.item_proj = (nn.Linear(filters, hidden_dim) for _ in range(2))
        self.machine = FactorisationMachine(dim=2 * hidden_dim, factors=factors)
        self.dropout = dropout

    def read(self, user_words: Tensor, user_mask: Tensor, item_words: Tensor, item_mask: Tensor) -> Tensor:
        sides = []
        for network, proj, tokens, mask in (
            (self.user, self.user_proj, user_words, user_mask),
            (self.item, self.item_proj, item_words, item_mask),
        ):
            read = network(*as_one_text(self.embedding, tokens, mask))
            sides.append(F.dropout(torch.relu(proj(read)), self.dropout, self.training))
        rating: Tensor = self.machine(torch.cat(sides, dim=1))
        return rating


def as_one_text(embedding: nn.Module, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The words of several texts one after another, embedded, and their mask, padding last.

    Shapes:
        tokens (batch, texts, words), mask bool of the same shape -> (batch, length, dim), bool (batch, length).
    """
    packed, real, _ = pack(tokens.flatten(1).unsqueeze(-1), mask.flatten(1))
    return embedding(packed.squeeze(-1)), real
