"""A gated recurrent unit over one vector per key."""

import torch
from torch import Tensor, nn


class GatedUpdate(nn.Module):
    r"""One step of a gated recurrent unit with projected inputs.

    .. math::
        z = \sigma(x_z + U_z c), \qquad r = \sigma(x_r + U_r c), \qquad \tilde c = \tanh(x_c + U_c (r \odot c)),
        \qquad c' = (1 - z) \odot c + z \odot \tilde c

    x = [x_z; x_r; x_c] is the sum of the projected inputs: inputs shared by all keys are projected once.

    Shapes:
        inputs broadcastable to (*batch, keys, 3 dim), previous (*batch, keys, dim) -> (*batch, keys, dim).

    Reference:
        Cho et al. (2014), arXiv:1406.1078, section 2.3: the reset gate comes before the product. Their z is our 1 - z.
    """

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.gate_proj = nn.Linear(dim, 2 * dim, bias=False)
        self.candidate_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, inputs: Tensor, previous: Tensor) -> Tensor:
        to_gates, to_candidate = inputs.split((2 * self.dim, self.dim), dim=-1)
        update, reset = torch.sigmoid(to_gates + self.gate_proj(previous)).chunk(2, dim=-1)
        candidate = torch.tanh(to_candidate + self.candidate_proj(reset * previous))
        return previous + update * (candidate - previous)
