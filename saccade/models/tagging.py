"""A label for each token, by self-attention."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.encoders import Encoder
from saccade.layers.choices import make_score, make_selection
from saccade.models.base import models
from saccade.models.text_encoders import EncoderName, make_encoder
from saccade.scores import Score
from saccade.selections import Selection


@models.register("tagging")
class Tagger(nn.Module):
    r"""An encoder whose states attend to each other before each is labelled.

    .. math:: c_i = \mathrm{attention}(h_i, h), \qquad z_i = W [h_i; c_i] + b

    A recurrent layer followed by self-attention is a block of Tan et al. (2018), here one, without its residuals.

    Shapes:
        tokens (batch, length), mask bool (batch, length) -> logits (batch, length, classes).

    Reference:
        Tan et al. (2018), arXiv:1712.01586, section 3.

    Args:
        encoder: "birnn", "rnn", "convolutional", "embedding" (no context), or any `Encoder`.
        score, selection: the score and selection of the attention, each a short name or an instance.
        dropout: applied to embeddings and before the output.
    """

    def __init__(
        self,
        *,
        vocab: int,
        classes: int,
        embedding_dim: int = 128,
        hidden_dim: int = 128,
        encoder: EncoderName | Encoder = "birnn",
        encoder_layers: int = 1,
        score: str | Score | partial[Score] = "scaled_dot",
        selection: str | Selection | partial[Selection] = "softmax",
        dropout: float = 0.2,
        max_length: int = 2048,
    ) -> None:
        super().__init__()
        self.encoder = make_encoder(
            encoder,
            vocab=vocab,
            embedding_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=encoder_layers,
            dropout=dropout,
            max_length=max_length,
        )
        dim = self.encoder.output_dim
        sizes = {"query_dim": dim, "key_dim": dim, "dim": dim, "hidden_dim": hidden_dim, "max_keys": max_length}
        self.attention = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
        self.output_proj = nn.Linear(dim + self.attention.aggregation.output_dim(dim), classes)
        self.dropout = dropout

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        encoded = self.encoder(tokens, mask)
        context = self.attention(encoded.states, encoded.states, mask=encoded.mask.unsqueeze(1)).context
        features = torch.cat([encoded.states, context], dim=-1)
        logits: Tensor = self.output_proj(F.dropout(features, self.dropout, self.training))
        return logits
