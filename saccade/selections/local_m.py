"""Local attention around the diagonal."""

import torch
from torch import Tensor

from saccade.selections.base import selections
from saccade.selections.local import LocalSelection, position_dtype


@selections.register("local_m")
class LocalM(LocalSelection):
    r"""Softmax over a window around the query's own position, assuming a roughly monotonic alignment.

    .. math:: p_t = \min(t, S - 1), \qquad
        a_t(s) = \frac{\exp(s_{ts})}{\sum_{|r - p_t| \le D} \exp(s_{tr})} \quad \text{for } |s - p_t| \le D

    D is `half_width`. The state is the number of queries read so far, so that reading step by step is equivalent.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3.2, "local-m".
    """

    def __init__(self, *, half_width: int = 10) -> None:
        super().__init__(half_width=half_width)

    def centre(self, query: Tensor, lengths: Tensor, state: int) -> Tensor:
        dtype = position_dtype(query)
        steps = torch.arange(state, state + query.shape[-2], device=query.device, dtype=dtype)
        return torch.minimum(steps, (lengths - 1).clamp(min=0).to(dtype))
