"""Helpers for selections that use the query directly."""

from torch import Tensor


def query_of(query: Tensor | None, scores: Tensor, query_dim: int, owner: object) -> Tensor:
    """Checks the query, and adds a channels axis if the scores (*batch, channels, queries, keys) have one."""
    if query is None:
        raise ValueError(
            f"{type(owner).__name__} computes its parameters from the query (query_dim={query_dim}), got query=None: "
            "pass query=(*batch, queries, query_dim), as Attention does."
        )
    if query.shape[-1] != query_dim:
        raise ValueError(
            f"query of shape {tuple(query.shape)} has {query.shape[-1]} features, but {type(owner).__name__} was built "
            f"with query_dim={query_dim}: build it with query_dim={query.shape[-1]}."
        )
    return query.unsqueeze(-3) if query.dim() < scores.dim() else query
