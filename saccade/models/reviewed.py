"""Common base of models that predict ratings from reviews."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from saccade.models.base import Costs, Losses
from saccade.models.factorisation import Factorisation


class ReviewedModel(nn.Module):
    r"""Predicts a rating from the reviews of both sides and, optionally, user and item biases.

    .. math:: y = f(\text{reviews of } u, \text{reviews of } i) \; [+\; w_u + w_i]

    An unknown user or item has bias 0.

    Shapes:
        user and item (batch,), 0 for unknown ones; user_words and item_words (batch, reviews, words), user_mask and
        item_mask bool of the same shape -> ratings (batch, 1).

    Args:
        users, items: how many there are, including the unknown one.
        biases: whether user and item have biases.
        penalty: the cost of the squared biases of each rating's user and item.
    """

    def __init__(self, *, users: int, items: int, biases: bool, penalty: float) -> None:
        super().__init__()
        self.biases: Factorisation | None = None
        if biases:
            self.biases = Factorisation(
                users=users, items=items, vocab=1, reviews=1, words=1, factors=0, penalty=penalty
            )

    @abstractmethod
    def read(self, user_words: Tensor, user_mask: Tensor, item_words: Tensor, item_mask: Tensor) -> Tensor:
        """(batch, 1): the rating that follows from the reviews."""

    def forward(
        self,
        user: Tensor,
        item: Tensor,
        user_words: Tensor,
        user_mask: Tensor,
        item_words: Tensor,
        item_mask: Tensor,
    ) -> Tensor:
        texts = user_words, user_mask, item_words, item_mask
        rating = self.read(*texts)
        return rating if self.biases is None else rating + self.biases(user, item, *texts)

    def costs(self, user: Tensor, item: Tensor, *texts: Tensor, losses: Losses) -> Costs:
        """The loss with the penalty of the biases."""
        ratings = self(user, item, *texts)
        if self.biases is None:
            return Costs(ratings, losses(ratings))
        penalty = self.biases.squares(user, item)
        return Costs(ratings, losses(ratings) + penalty, penalty)
