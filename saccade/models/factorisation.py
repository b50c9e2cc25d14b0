"""Ratings from user and item names alone: biases, matrix factorisation, factorisation machine."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.models.base import Costs, Losses, models


@models.register("factorisation")
class Factorisation(nn.Module):
    r"""Predicts a rating from a user bias, an item bias, and the inner product of their factors.

    .. math:: y = w_0 + w_u + w_i + \langle v_u, v_i \rangle

    Ratings are on the scale of the task, whose 0 is the mean. With `factors: 0` only the biases are left, the usual
    baseline; with `biases: false` it is plain matrix factorisation. With both it is the factorisation machine whose
    features are the user and the item, which is the same as matrix factorisation with biases.

    Cold start: an unknown user or item has bias 0 and factors 0.

    Shapes:
        user (batch,), item (batch,), 0 for unknown ones; words and masks of both sides are ignored
        -> ratings (batch, 1).

    Reference:
        Koren et al. (2009), "Matrix factorization techniques for recommender systems", equations 1 to 4; Rendle (2010),
        "Factorization machines".

    Args:
        factors: the number of factors of each user and item; 0 for none.
        biases: whether users and items have biases.
        penalty: lambda, the cost of squared biases and factors of each rating's user and item.
    """

    def __init__(
        self,
        *,
        users: int,
        items: int,
        vocab: int,
        reviews: int,
        words: int,
        factors: int = 10,
        biases: bool = True,
        penalty: float = 0.02,
    ) -> None:
        super().__init__()
        check_count("factors", factors, least=0)
        if not penalty >= 0.0:
            raise ValueError(f"penalty must be 0 or more, got {penalty}.")
        if not factors and not biases:
            raise ValueError("factors is 0 and biases is false: there is nothing to learn. Set one of them.")
        self.mean = nn.Parameter(torch.zeros(1))
        self.user_bias, self.item_bias = (_table(size, int(biases), 0.0) for size in (users, items))
        self.user_factors, self.item_factors = (_table(size, factors, 0.1) for size in (users, items))
        self.penalty = penalty

    def forward(
        self,
        user: Tensor,
        item: Tensor,
        user_words: Tensor,
        user_mask: Tensor,
        item_words: Tensor,
        item_mask: Tensor,
    ) -> Tensor:
        biases: Tensor = self.user_bias(user).sum(1) + self.item_bias(item).sum(1)
        products = (self.user_factors(user) * self.item_factors(item)).sum(1)
        ratings: Tensor = (self.mean + biases + products).unsqueeze(1)
        return ratings

    def costs(self, user: Tensor, item: Tensor, *texts: Tensor, losses: Losses) -> Costs:
        """The loss plus the penalty of the users and items in the batch."""
        ratings = self(user, item, *texts)
        penalty = self.squares(user, item)
        return Costs(ratings, losses(ratings) + penalty, penalty)

    def squares(self, user: Tensor, item: Tensor) -> Tensor:
        """(batch,): the penalty of each rating."""
        tables = ((self.user_bias, user), (self.item_bias, item), (self.user_factors, user), (self.item_factors, item))
        return self.penalty * torch.stack([table(numbers).square().sum(1) for table, numbers in tables]).sum(0)


def _table(size: int, dim: int, deviation: float) -> nn.Embedding:
    """Initialised from a normal distribution; row 0, for unknown names, stays 0."""
    table = nn.Embedding(size, dim, padding_idx=0)
    nn.init.normal_(table.weight, std=deviation)
    with torch.no_grad():
        table.weight[0] = 0.0
    return table
