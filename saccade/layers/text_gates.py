"""Scores for gates: of words by their neighbours, or by the whole text."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.aggregations import Aggregation
from saccade.checks import check_count
from saccade.layers.text_convolution import TextConvolution
from saccade.scores import Score
from saccade.scores.base import Prepared


class TextScore(Score):
    """A score that does not depend on the query, but on all keys of a text."""

    query_free: bool = True
    pairwise: bool = False
    appendable: bool = False

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        scores: Tensor = prepared.transpose(-1, -2)
        return scores.expand(*scores.shape[:-2], query.shape[-2], scores.shape[-1])


class WindowScore(TextScore):
    r"""Scores a word by the words around it, with one filter; beyond the text there are zeros.

    .. math:: s_j = w \cdot k_{j - r : j + r} + b

    Shapes:
        query ignored, keys (batch, keys, key_dim) -> scores (batch, queries, keys).

    Reference:
        Seo et al. (2017), "Interpretable convolutional neural networks with dual local and global attention for review
        rating prediction", section 3.2.
    """

    def __init__(self, *, key_dim: int, width: int = 5) -> None:
        super().__init__()
        if width < 1 or width % 2 == 0:
            raise ValueError(f"width must be odd, so that the window is centred, got {width}.")
        self.key_dim = key_dim
        self.convolution = nn.Conv1d(key_dim, 1, width, padding=width // 2)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        if not keys.shape[1]:
            return keys[..., :1]
        return self.convolution(keys.transpose(1, 2)).transpose(1, 2)


class WholeTextScore(TextScore):
    r"""Scores a text by a filter as long as the longest text: one score for all its words, or one for each.

    .. math:: s = \sum_l w_l \cdot k_l + b \quad\text{or}\quad s_j = \sum_l w_{l - j + T / 2} \cdot k_l + b

    Shapes:
        query ignored, keys (batch, keys, key_dim) with at most `max_keys` keys -> scores (batch, queries, keys).

    Reference:
        Seo et al. (2017), section 3.3, which leaves open which of the two is meant.

    Args:
        key_dim: features of a key.
        max_keys: the length T of the filter.
        form: "scalar" or "position".
    """

    max_keys: int

    def __init__(self, *, key_dim: int, max_keys: int, form: Literal["scalar", "position"] = "scalar") -> None:
        super().__init__()
        check_count("max_keys", max_keys)
        if form not in ("scalar", "position"):
            raise ValueError(f"form must be 'scalar' or 'position', got {form!r}.")
        self.key_dim, self.max_keys, self.form = key_dim, max_keys, form
        self.filter = nn.Parameter(torch.empty(1, key_dim, max_keys))
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.filter, std=(key_dim * max_keys) ** -0.5)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        length = keys.shape[1]
        if length > self.max_keys:
            raise ValueError(f"The text has {length} words, but the filter was built with max_keys={self.max_keys}.")
        if self.form == "scalar":
            score = torch.einsum("btd,dt->b", keys, self.filter[0, :, :length]) + self.bias
            return score.view(-1, 1, 1).expand(-1, length, 1)
        half = self.max_keys // 2
        around = F.pad(keys.transpose(1, 2), (half, self.max_keys - 1 - half))
        return F.conv1d(around, self.filter, self.bias).transpose(1, 2) if length else keys[..., :1]


class ReadConvolved(Aggregation):
    r"""The largest value of each filter over the values, each multiplied by its weight.

    .. math:: c_f = \max_j \phi(W_f (w v)_{j : j + n} + b_f)

    Shapes:
        weights (batch, 1, keys), values (batch, keys, value_dim) -> context (batch, 1, output_dim).

    Args:
        convolution: the filters.
    """

    def __init__(self, *, convolution: TextConvolution) -> None:
        super().__init__()
        self.convolution = convolution

    def output_dim(self, value_dim: int) -> int:
        return self.convolution.output_dim

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        gated = values * weights.transpose(-1, -2)
        real = weights.new_ones(weights.shape, dtype=torch.bool) if mask is None else mask.expand(weights.shape)
        found: Tensor = self.convolution(gated, real.squeeze(1))
        return found.unsqueeze(1)
