"""Convolutional score."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.scores.base import DotProduct, Prepared, Score, check_features, scores

SMALLEST_SQUARED_NORM = 1e-12
"""Below this, features are divided by its square root, which keeps gradients finite; all-zero features stay zero."""


@scores.register("convolutional")
class ConvolutionalScore(Score):
    r"""Extracts features by convolutions over neighbouring keys and weights them by the query.

    .. math::
        L_1 = \mathrm{leakyrelu}(\mathrm{conv}(k, K_1)), \qquad L_2^{(i)} = \mathrm{conv}(L_1, K_2) \odot q_i,
        \qquad F^{(i)} = \frac{L_2^{(i)}}{|L_2^{(i)}|}, \qquad s_{ij} = \mathrm{conv}(F^{(i)}, K_{att})_j

    |L_2| is over all positions and channels. The convolutions are zero-padded to preserve the length, and treat masked
    keys as zeros. Since the query only enters L_2 as a factor per channel, the last convolution is also computed once
    per memory, channel by channel; each query then costs one inner product per key.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Allamanis et al. (2016), arXiv:1602.03001, section 2: q_i is h_{t-1}, of size k_2 = `query_dim`; k_1 is
        `hidden_dim`, `widths` are w_1, w_2, w_3.

    Args:
        query_dim, key_dim: features of queries and keys; the second convolution has `query_dim` channels.
        hidden_dim: channels of the first convolution.
        widths: the widths of the three convolutions.
        negative_slope: the negative slope of the leaky ReLU.
    """

    pairwise: bool = False
    appendable: bool = False

    def __init__(
        self,
        *,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        widths: tuple[int, int, int] = (24, 29, 10),
        negative_slope: float = 0.1,
    ) -> None:
        super().__init__()
        if len(widths) != 3 or min(widths) < 1:
            raise ValueError(f"widths must be three numbers, each 1 or more, got {widths}.")
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.conv_1 = nn.Conv1d(key_dim, hidden_dim, widths[0])
        self.conv_2 = nn.Conv1d(hidden_dim, query_dim, widths[1])
        self.conv_att = nn.Conv1d(query_dim, 1, widths[2])
        self.negative_slope = negative_slope

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        if keys.shape[-2] == 0:
            nothing = keys.new_zeros(*keys.shape[:-1], self.conv_2.out_channels)
            return nothing, nothing
        # Convolutions take (batch, channels, keys).
        flat = keys.reshape(-1, *keys.shape[-2:]).transpose(-1, -2)
        padding = None if mask is None else ~mask.expand(keys.shape[:-1]).reshape(-1, 1, keys.shape[-2])
        hidden = F.leaky_relu(self.conv_1(_padded(flat, padding, self.conv_1)), self.negative_slope)
        features = self.conv_2(_padded(hidden, padding, self.conv_2))
        features = features if padding is None else features.masked_fill(padding, 0.0)
        weight = self.conv_att.weight.transpose(0, 1)
        per_channel = F.conv1d(_padded(features, None, self.conv_att), weight, groups=self.conv_att.in_channels)
        shape = (*keys.shape[:-1], self.conv_2.out_channels)
        return tuple(x.transpose(-1, -2).reshape(shape) for x in (per_channel, features))

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_features(query, self.query_dim, "query", self, "query_dim")
        per_channel, features = prepared
        # Half precision can represent neither the squares nor the inverse of a small norm.
        wide = torch.promote_types(query.dtype, torch.float32)
        squares = features.to(wide).square().sum(-2, keepdim=True)
        squared_norm = query.to(wide).square() @ squares.transpose(-1, -2)
        smallest = max(SMALLEST_SQUARED_NORM, torch.finfo(query.dtype).tiny)
        inverse = torch.where(squared_norm > 0, squared_norm.clamp(min=smallest).rsqrt(), 0.0)
        scaled = (query.to(wide) * inverse).to(query.dtype)
        assert self.conv_att.bias is not None
        bias = self.conv_att.bias.expand(*query.shape[:-1], per_channel.shape[-2])
        return DotProduct(scaled, per_channel, 1.0, bias)


def _padded(tensor: Tensor, blank: Tensor | None, conv: nn.Conv1d) -> Tensor:
    """Zeros where `blank` is True, and zero padding so that `conv` preserves the length."""
    tensor = tensor if blank is None else tensor.masked_fill(blank, 0.0)
    width = conv.kernel_size[0]
    return F.pad(tensor, ((width - 1) // 2, width // 2))
