"""Classification by attention pooling."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.encoders import Encoder, PooledEncoder
from saccade.encoders.pooled import PoolingName
from saccade.models.base import models
from saccade.models.picture_encoders import PictureEncoderName
from saccade.models.text_encoders import EncoderName, make_encoder
from saccade.scores import Score
from saccade.selections import Selection


@models.register("pooling")
class AttentionPooling(PooledEncoder):
    r"""An encoder whose states are pooled by attention with learned queries, and a linear layer.

    .. math:: c_m = \mathrm{attention}(u_m, h), \qquad z = W [c_1; ...; c_M] + b

    With one query u, an additive score and softmax this is the word attention of Yang et al. (2016); with several
    queries the self-attentive pooling of Lin et al. (2017).

    Shapes:
        tokens (batch, length), or feature vectors (batch, length, dim), mask bool (batch, length) -> logits (batch,
        classes).

    Reference:
        Yang et al. (2016), "Hierarchical attention networks", section 2.2; Lin et al. (2017), arXiv:1703.03130.

    Args:
        vocab, dim: give exactly one: the number of tokens, or the size of the feature vectors.
        encoder: "birnn" or "rnn" (GRUs), "bilstm", "lstm", "lstmn", "convolutional", "embedding" (no context); for
            pictures "residual" or "patches"; "given" pools feature vectors as they are; or any `Encoder`.
        pooling: "attention", or the "average" or "max" of the states, without attention.
        score, selection: the score and selection of the attention, each a short name or an instance.
        num_queries: M, how many things to look for.
        dropout: applied to embeddings and to the pooled vectors.
    """

    def __init__(
        self,
        *,
        vocab: int | None = None,
        dim: int | None = None,
        classes: int,
        embedding_dim: int = 128,
        hidden_dim: int = 128,
        encoder: EncoderName | PictureEncoderName | Encoder | partial[Encoder] = "birnn",
        encoder_layers: int = 1,
        pooling: PoolingName = "attention",
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        num_queries: int = 1,
        dropout: float = 0.2,
        max_length: int = 2048,
    ) -> None:
        super().__init__(
            encoder=make_encoder(
                encoder,
                vocab=vocab,
                features=dim,
                embedding_dim=embedding_dim,
                hidden_dim=hidden_dim,
                num_layers=encoder_layers,
                dropout=dropout,
                max_length=max_length,
            ),
            pooling=pooling,
            score=score,
            selection=selection,
            hidden_dim=hidden_dim,
            num_queries=num_queries,
            max_length=max_length,
        )
        self.output_proj = nn.Linear(self.output_dim, classes)
        self.dropout = dropout

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        pooled = super().forward(tokens, mask)
        logits: Tensor = self.output_proj(F.dropout(pooled, self.dropout, self.training))
        return logits
