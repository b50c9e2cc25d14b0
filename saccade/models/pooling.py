"""Classification by attention pooling."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.checks import check_count
from saccade.encoders import Encoder
from saccade.layers.choices import make_score, make_selection
from saccade.models.base import models
from saccade.models.text_encoders import EncoderName, make_encoder
from saccade.scores import Score
from saccade.selections import Selection


@models.register("pooling")
class AttentionPooling(nn.Module):
    r"""An encoder whose states are pooled by attention with learned queries.

    .. math:: c_m = \mathrm{attention}(u_m, h), \qquad z = W [c_1; ...; c_M] + b

    With one query u, an additive score and softmax this is the word attention of Yang et al. (2016); with several
    queries the self-attentive pooling of Lin et al. (2017).

    Shapes:
        tokens (batch, length), mask bool (batch, length) -> logits (batch, classes).

    Reference:
        Yang et al. (2016), "Hierarchical attention networks", section 2.2; Lin et al. (2017), arXiv:1703.03130.

    Args:
        encoder: "birnn", "rnn", "convolutional", "embedding" (no context), or any `Encoder`.
        score, selection: the score and selection of the attention, each a short name or an instance.
        num_queries: M, how many things are looked for.
        dropout: applied to embeddings and to the pooled vectors.
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
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        num_queries: int = 1,
        dropout: float = 0.2,
        max_length: int = 2048,
    ) -> None:
        super().__init__()
        check_count("num_queries", num_queries)
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
        self.pooling = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
        self.queries = nn.Parameter(torch.empty(num_queries, dim))
        nn.init.normal_(self.queries, std=dim**-0.5)
        self.output_proj = nn.Linear(num_queries * self.pooling.aggregation.output_dim(dim), classes)
        self.dropout = dropout

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        encoded = self.encoder(tokens, mask)
        queries = self.queries.expand(len(tokens), -1, -1)
        pooled = self.pooling(queries, encoded.states, mask=encoded.mask.unsqueeze(1)).context.flatten(1)
        logits: Tensor = self.output_proj(F.dropout(pooled, self.dropout, self.training))
        return logits
