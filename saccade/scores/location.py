"""Location-only score."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("location")
class LocationScore(Score):
    r"""Scores positions from the query alone, regardless of the keys.

    .. math:: s_{ij} = (W q_i)_j

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, any) with at most `max_keys` keys
        -> scores (*batch, queries, keys).

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3.1, "location": W is W_a, q_i is h_t. Positions beyond
        `max_keys`, which the paper ignores, are an error: truncate the keys.
    """

    pairwise: bool = False
    max_keys: int

    def __init__(self, *, query_dim: int, max_keys: int) -> None:
        super().__init__()
        check_count("max_keys", max_keys)
        self.query_dim = query_dim
        self.max_keys = max_keys
        self.query_proj = nn.Linear(query_dim, max_keys, bias=False)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        if start + keys.shape[-2] > self.max_keys:
            raise ValueError(
                f"keys reach position {start + keys.shape[-2]}, but LocationScore was built with max_keys="
                f"{self.max_keys}: increase max_keys, or pass only the first {self.max_keys} keys and values."
            )
        return keys[..., :0]  # only their number matters

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        return F.linear(query, self.query_proj.weight[: prepared.shape[-2]])
