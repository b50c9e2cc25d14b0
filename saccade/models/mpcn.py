"""MPCN: multi-pointer co-attention networks."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.layers import CoAttention, FactorisationMachine, TokenEmbedding
from saccade.layers.choices import make_selection
from saccade.models.base import models
from saccade.models.reviewed import ReviewedModel
from saccade.scores import Score
from saccade.selections import GumbelSoftmax, Selection, Softmax


@models.register("mpcn")
class MPCN(ReviewedModel):
    r"""Points at one review by the user and one of the item, reads both word by word, and predicts the rating.

    .. math:: x_i = \sigma(W_g r_i + b_g) \odot \tanh(W_u r_i + b_u), \quad r_i = \textstyle\sum_t e_{it}, \qquad
        s_{ij} = F(a_i)^\top M F(b_j)

    .. math:: p = \mathrm{Gumbel}(\max_j s_{ij}), \quad q = \mathrm{Gumbel}(\max_i s_{ij}), \qquad
        y = \mathrm{FM}([a'; b'])

    a and b are the x of both sides, F a layer with ReLU. Each pointer picks one review of each side: in training by a
    straight-through sample, in evaluation the best one. A second co-attention, with softmax of the mean, relates the
    words of the two reviews; its weighted sums of words are what the pointer reads. Each pointer has its own weights.
    Padding is never picked; a side without reviews is read as zeros.

    Shapes:
        as `ReviewedModel`.

    Reference:
        Tay et al. (2018), arXiv:1801.09251: up to 20 reviews of 30 words, embeddings of size 50, 1 to 10 pointers, 10
        factors. The authors' code masks nothing; here padding has no part in any maximum.

    Args:
        hidden_dim: features of F; None compares the reviews and the words as they are, as the authors' code does.
        pointers: how many pairs of reviews are read.
        combine: how they are combined: "concat", "sum", or "ffn", which is a layer with ReLU over all of them.
        selection: how a pointer picks a review: a short name or an instance; None for straight-through Gumbel-softmax
            with temperature 0.5. "softmax" reads a mixture of all reviews.
        score: how reviews, and words, are compared; a short name or an instance.
        factors: of the factorisation machine.
        dropout: applied to sums of words, to the words of picked reviews and to what was read.
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
        embedding_dim: int = 50,
        hidden_dim: int | None = 50,
        pointers: int = 3,
        combine: Literal["concat", "sum", "ffn"] = "concat",
        selection: str | Selection | partial[Selection] | None = None,
        score: str | Score | partial[Score] = "bilinear",
        factors: int = 10,
        dropout: float = 0.2,
        biases: bool = False,
        penalty: float = 0.1,
    ) -> None:
        super().__init__(users=users, items=items, biases=biases, penalty=penalty)
        check_count("pointers", pointers)
        if combine not in ("concat", "sum", "ffn"):
            raise ValueError(f"combine must be 'concat', 'sum' or 'ffn', got {combine!r}.")
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=embedding_dim)
        self.gate_proj = nn.Linear(embedding_dim, embedding_dim)
        self.review_proj = nn.Linear(embedding_dim, embedding_dim)
        self.pointers = nn.ModuleList(
            _Pointer(dim=embedding_dim, hidden_dim=hidden_dim, selection=selection, score=score, dropout=dropout)
            for _ in range(pointers)
        )
        self.combine = combine
        size = embedding_dim * (pointers if combine != "sum" else 1)
        self.user_proj, self.item_proj = (
            nn.Linear(size, embedding_dim) if combine == "ffn" else nn.Identity() for _ in range(2)
        )
        size = embedding_dim if combine == "ffn" else size
        self.machine = FactorisationMachine(dim=2 * size, factors=factors)
        self.dropout = dropout

    def read(self, user_words: Tensor, user_mask: Tensor, item_words: Tensor, item_mask: Tensor) -> Tensor:
        sides = ((user_words, user_mask), (item_words, item_mask))
        embedded = [self.embedding(tokens) for tokens, _ in sides]
        a, b = (self._reviews(words, mask) for words, (_, mask) in zip(embedded, sides, strict=True))
        picks = [pointer.pick(a, b, user_mask.any(2), item_mask.any(2)) for pointer in self._pointers()]
        # All pointers of a side at once: nothing here is larger than the words of all reviews.
        chosen = [torch.cat(side, dim=1) for side in zip(*picks, strict=True)]
        texts = [
            (p @ words.flatten(2)).unflatten(2, words.shape[2:]) for p, words in zip(chosen, embedded, strict=True)
        ]
        masks = [(p @ mask.to(p)) > 0 for p, (_, mask) in zip(chosen, sides, strict=True)]
        read = [
            pointer.read(*(text[:, number] for text in texts), *(mask[:, number] for mask in masks))
            for number, pointer in enumerate(self._pointers())
        ]
        one = self._combined([each[0] for each in read], self.user_proj)
        other = self._combined([each[1] for each in read], self.item_proj)
        features = F.dropout(torch.cat([one, other], dim=1), self.dropout, self.training)
        rating: Tensor = self.machine(features)
        return rating

    def _pointers(self) -> list[_Pointer]:
        return [pointer for pointer in self.pointers if isinstance(pointer, _Pointer)]

    def _reviews(self, words: Tensor, mask: Tensor) -> Tensor:
        """(batch, reviews, dim): one vector per review, from words (batch, reviews, words, dim)."""
        total = F.dropout((mask.to(words).unsqueeze(2) @ words).squeeze(2), self.dropout, self.training)
        return torch.sigmoid(self.gate_proj(total)) * torch.tanh(self.review_proj(total))

    def _combined(self, read: list[Tensor], proj: nn.Module) -> Tensor:
        if self.combine == "sum":
            return torch.stack(read).sum(0)
        joined = torch.cat(read, dim=1)
        return torch.relu(proj(joined)) if self.combine == "ffn" else joined


class _Pointer(nn.Module):
    """Picks a review on each side, then reads the words of both."""

    def __init__(
        self,
        *,
        dim: int,
        hidden_dim: int | None,
        selection: str | Selection | partial[Selection] | None,
        score: str | Score | partial[Score],
        dropout: float,
    ) -> None:
        super().__init__()

        def pick() -> Selection:
            return make_selection(selection) or GumbelSoftmax(temperature=0.5, straight_through=True)

        shared: dict[str, Any] = {"dim": dim, "hidden_dim": hidden_dim, "score": score}
        self.reviews = CoAttention(**shared, selection=pick, pooling="max")
        self.words = CoAttention(**shared, selection=Softmax, pooling="mean")
        self.dropout = dropout

    def pick(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> tuple[Tensor, Tensor]:
        """How much of each review is read, (batch, 1, reviews) for both sides: one-hot for a hard choice."""
        found = self.reviews(a, b, a_mask, b_mask, a, b)
        attentions = (self.reviews.user, self.reviews.item)
        one, other = (
            attention.aggregation.weights(reading.selection)
            for attention, reading in zip(attentions, found, strict=True)
        )
        return one, other

    def read(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> tuple[Tensor, Tensor]:
        """What the words of the two reviews (batch, words, dim) say: two vectors (batch, dim)."""
        a, b = (F.dropout(words, self.dropout, self.training) for words in (a, b))
        found = self.words(a, b, a_mask, b_mask, a, b)
        return found.user.context.squeeze(1), found.item.context.squeeze(1)
