"""D-Attn: dual local and global attention for ratings."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.layers import TextConvolution, TokenEmbedding
from saccade.layers.text_gates import ReadConvolved, WholeTextScore, WindowScore
from saccade.models.base import models
from saccade.models.deep_conn import as_one_text
from saccade.models.reviewed import ReviewedModel
from saccade.selections import Sigmoid

Gate = Literal["scalar", "position", "none"]
Parts = Literal["dual", "local", "global"]


@models.register("dual_attention")
class DualAttention(ReviewedModel):
    r"""Predicts a rating from the words that matter in the reviews by the user and of the item: D-Attn.

    .. math:: \hat x_t = \sigma(w \cdot x_{t-2:t+2} + b)\, x_t, \qquad
        c_s = [\max_t \tanh(\mathrm{conv}_1(\hat x)_t);\; \max_t \tanh(\mathrm{conv}_{2,3,4}(g x)_t)]

    .. math:: v_s = W_2\, \mathrm{relu}(W_1 c_s + b_1) + b_2, \qquad y = v_u^\top v_i

    Local attention keeps words that matter in their context; global attention, with g from a filter as long as the
    text, weighs the text as a whole. All reviews of a side are one text; a side without reviews is an empty text.

    Shapes:
        as `ReviewedModel`.

    Reference:
        Seo et al. (2017), "Interpretable convolutional neural networks with dual local and global attention for review
        rating prediction", RecSys, section 3: embeddings of size 100, a window of 5, 200 local filters, 100 global ones
        of each width, layers of 500 and 50.

    Args:
        window: the width of the filter of local attention; odd.
        local_filters, global_filters: the numbers of filters; global ones for each of three widths.
        gate: of global attention: "scalar" for one number for the text, "position" for one for each word, "none".
        parts: "dual", or only "local" or "global" attention.
        hidden_dim: features of the first layer above both.
        output_dim: features of v_u and v_i.
        dropout: applied after the first layer.
        biases, penalty: add biases of user and item, which the paper does not; their squares cost `penalty`.
    """

    def __init__(
        self,
        *,
        users: int,
        items: int,
        vocab: int,
        reviews: int,
        words: int,
        embedding_dim: int = 100,
        window: int = 5,
        local_filters: int = 200,
        global_filters: int = 100,
        gate: Gate = "scalar",
        parts: Parts = "dual",
        hidden_dim: int = 500,
        output_dim: int = 50,
        dropout: float = 0.5,
        biases: bool = False,
        penalty: float = 0.1,
    ) -> None:
        super().__init__(users=users, items=items, biases=biases, penalty=penalty)
        if gate not in ("scalar", "position", "none"):
            raise ValueError(f"gate must be 'scalar', 'position' or 'none', got {gate!r}.")
        if parts not in ("dual", "local", "global"):
            raise ValueError(f"parts must be 'dual', 'local' or 'global', got {parts!r}.")
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=embedding_dim)
        self.user, self.item = (
            _Tower(
                dim=embedding_dim,
                longest=reviews * words,
                window=window,
                local_filters=0 if parts == "global" else local_filters,
                global_filters=0 if parts == "local" else global_filters,
                gate=gate,
                hidden_dim=hidden_dim,
                output_dim=output_dim,
                dropout=dropout,
            )
            for _ in range(2)
        )

    def read(self, user_words: Tensor, user_mask: Tensor, item_words: Tensor, item_mask: Tensor) -> Tensor:
        one = self.user(*as_one_text(self.embedding, user_words, user_mask))
        other = self.item(*as_one_text(self.embedding, item_words, item_mask))
        rating: Tensor = (one * other).sum(1, keepdim=True)
        return rating


class _Tower(nn.Module):
    """One side: (batch, length, dim) words and their mask -> (batch, output_dim)."""

    def __init__(
        self,
        *,
        dim: int,
        longest: int,
        window: int,
        local_filters: int,
        global_filters: int,
        gate: Gate,
        hidden_dim: int,
        output_dim: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.local: Attention | None = None
        self.whole: Attention | TextConvolution | None = None
        size = 0
        if local_filters:
            narrow = TextConvolution(input_dim=dim, filters=local_filters, widths=(1,), activation=torch.tanh)
            score = WindowScore(key_dim=dim, width=window)
            self.local = Attention(score=score, selection=Sigmoid(), aggregation=ReadConvolved(convolution=narrow))
            size += narrow.output_dim
        if global_filters:
            wide = TextConvolution(input_dim=dim, filters=global_filters, widths=(2, 3, 4), activation=torch.tanh)
            self.whole = wide
            if gate != "none":
                whole = WholeTextScore(key_dim=dim, max_keys=longest, form=gate)
                self.whole = Attention(score=whole, selection=Sigmoid(), aggregation=ReadConvolved(convolution=wide))
            size += wide.output_dim
        self.hidden = nn.Linear(size, hidden_dim)
        self.output_proj = nn.Linear(hidden_dim, output_dim)
        self.dropout = dropout

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        found = []
        if self.local is not None:
            found.append(self.local(None, words, mask=mask.unsqueeze(1)).context.squeeze(1))
        if isinstance(self.whole, Attention):
            found.append(self.whole(None, words, mask=mask.unsqueeze(1)).context.squeeze(1))
        elif self.whole is not None:
            found.append(self.whole(words, mask))
        hidden = F.dropout(torch.relu(self.hidden(torch.cat(found, dim=1))), self.dropout, self.training)
        vector: Tensor = self.output_proj(hidden)
        return vector
