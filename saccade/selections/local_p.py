"""Local attention around a predicted position."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.selections.base import selections
from saccade.selections.local import LocalSelection, position_dtype


@selections.register("local_p")
class LocalP(LocalSelection):
    r"""Softmax over a window around a position predicted from the query, times a Gaussian around that position.

    .. math:: p_t = S\,\sigma(v^\top \tanh(W q_t)), \qquad
        a_t(s) = \operatorname{softmax}_{|r - p_t| \le D}(s_{tr})_s \;
        \exp\left(-\frac{(s - p_t)^2}{2 (D/2)^2}\right)

    D is `half_width`, S the number of attendable keys, q_t the decoder state h_t. The prediction gets its gradient
    only through the Gaussian. As in the paper, the weights are not renormalised unless `renormalize` is set.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape, query (*batch, queries, query_dim)
        -> a `Categorical` over keys; without `renormalize` its rows sum to less than one.

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3.2, "local-p"; v, W are v_p, W_p.
    """

    def __init__(
        self, *, query_dim: int, hidden_dim: int | None = None, half_width: int = 10, renormalize: bool = False
    ) -> None:
        super().__init__(half_width=half_width)
        if half_width < 1:
            raise ValueError(f"half_width must be 1 or more (the Gaussian's sigma is half of it), got {half_width}.")
        self.query_dim = query_dim
        self.defective = not renormalize
        self.query_proj = nn.Linear(query_dim, hidden_dim or query_dim, bias=False)
        self.position_proj = nn.Linear(hidden_dim or query_dim, 1, bias=False)

    def centre(self, query: Tensor, lengths: Tensor, state: int) -> Tensor:
        if query.shape[-1] != self.query_dim:
            raise ValueError(
                f"LocalP predicts the position from the query: it was built with query_dim={self.query_dim}, "
                f"got a query of shape {tuple(query.shape)}."
            )
        dtype = position_dtype(query)
        with torch.autocast(query.device.type, enabled=False):
            hidden = torch.tanh(F.linear(query.to(dtype), self.query_proj.weight.to(dtype)))
            logit = F.linear(hidden, self.position_proj.weight.to(dtype)).squeeze(-1)
        lengths = lengths.to(dtype)
        return torch.minimum(lengths * torch.sigmoid(logit), (lengths - 1).clamp(min=0))

    def weigh(self, scores: Tensor, within: Tensor, distance: Tensor) -> Tensor:
        sigma = self.half_width / 2
        weights = super().weigh(scores, within, distance) * torch.exp(-(distance**2) / (2 * sigma**2))
        if not self.defective:
            total = weights.sum(-1, keepdim=True)
            weights = weights / torch.where(total > 0, total, 1.0)
        return weights.to(scores.dtype)
