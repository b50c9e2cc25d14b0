"""Pairwise aggregation."""

import torch
from torch import Tensor, nn

from saccade.aggregations.base import Aggregation, aggregations
from saccade.checks import check_count
from saccade.distributions import Bernoulli, Categorical, Distribution, Segmentation


@aggregations.register("pairwise")
class Pairwise(Aggregation):
    r"""The expectation of a function of neighbouring values and of which of them are picked.

    .. math:: c_i = \sum_j \sum_{(a, b) \neq (0, 0)} p(z_j = a, z_{j+1} = b)\, W_{ab} [v_j; v_{j+1}]

    It reads the cliques of a `LinearChain`; for selections that pick one key, or each key independently, these follow
    from the weights. Pairs with a masked key are ignored.

    Shapes:
        weights (*batch, queries, keys - 1, 2, 2), values (*batch, keys, value_dim) -> context (*batch, queries,
        output_dim); zero if there are fewer than two keys.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, equation 1: f_C(x, z_C) of cliques C = (j, j + 1).

    Args:
        value_dim: features of the values; in `MultiHead`, of one head.
        output_dim: features of the context (default: `value_dim`).
    """

    def __init__(self, *, value_dim: int, output_dim: int | None = None) -> None:
        super().__init__()
        self.value_dim = value_dim
        self.context_dim = value_dim if output_dim is None else output_dim
        check_count("value_dim", self.value_dim)
        check_count("output_dim", self.context_dim)
        self.pair_proj = nn.Linear(2 * value_dim, 3 * self.context_dim, bias=False)

    def weights(self, selection: Distribution) -> Tensor:
        if isinstance(selection, Segmentation):
            return selection.edges
        if not isinstance(selection, Categorical | Bernoulli):
            raise TypeError(
                f"the pairwise aggregation reads pairs of neighbours, which {type(selection).__name__} does not have: "
                "use the LinearChain selection."
            )
        first, second = selection.marginals[..., :-1], selection.marginals[..., 1:]
        both = first * second if isinstance(selection, Bernoulli) else torch.zeros_like(first)
        neither = 1.0 - first - second + both
        return torch.stack([torch.stack([neither, second - both], -1), torch.stack([first - both, both], -1)], -2)

    def output_dim(self, value_dim: int) -> int:
        return self.context_dim

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if values.shape[-1] != self.value_dim:
            raise ValueError(
                f"values of shape {tuple(values.shape)} have {values.shape[-1]} features, but Pairwise was built with "
                f"value_dim={self.value_dim}; in MultiHead, this is the size of one head."
            )
        if mask is not None:
            keys = mask.expand(*mask.shape[:-1], values.shape[-2])
            weights = torch.where((keys[..., :-1] & keys[..., 1:])[..., None, None], weights, 0.0)
        pairs: Tensor = self.pair_proj(torch.cat([values[..., :-1, :], values[..., 1:, :]], dim=-1))
        pairs = pairs.unflatten(-1, (3, self.context_dim)).flatten(-3, -2)  # (*batch, pairs * 3, context)
        return weights.flatten(-2)[..., 1:].flatten(-2) @ pairs
