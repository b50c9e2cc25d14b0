"""Classification by attention pooling."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.encoders import Encoder, PooledEncoder
from saccade.encoders.pooled import PoolingName
from saccade.layers import MovingBaseline
from saccade.models.base import Costs, Losses, models
from saccade.models.picture_encoders import PictureEncoderName
from saccade.models.text_encoders import EncoderName, make_encoder
from saccade.scores import Score
from saccade.selections import Selection


@models.register("pooling")
class AttentionPooling(PooledEncoder):
    r"""An encoder whose states are pooled by attention with learned queries, and a linear layer.

    .. math:: c_m = \mathrm{attention}(u_m, h), \qquad z = W [c_1; ...; c_M] + b

    With one query u, an additive score and softmax this is the word attention of Yang et al. (2016); with several
    queries the self-attentive pooling of Lin et al. (2017). Hard attention (`selection="hard"`) reads one position for
    each query, drawn from the weights in training, which adds the score-function estimate: see
    `saccade.losses.reinforce_loss`.

    Shapes:
        tokens (batch, length), or feature vectors (batch, length, dim), mask bool (batch, length) -> logits (batch,
        classes).

    Reference:
        Yang et al. (2016), "Hierarchical attention networks", section 2.2; Lin et al. (2017), arXiv:1703.03130.

    Args:
        vocab, dim: give exactly one: the number of tokens, or the size of the feature vectors.
        encoder: "birnn" or "rnn" (GRUs), "bilstm", "lstm", "lstmn", "convolutional", "embedding" (no context); for
            pictures "residual" or "patches"; "given" pools feature vectors as they are, "projected" a layer
            over them; or any `Encoder`.
        pooling: "attention", or the "average" or "max" of the states, without attention.
        score, selection: the score and selection of the attention, each a short name or an instance.
        num_queries: M, how many things to look for.
        reward_weight: how much the score-function term of hard attention counts.
        entropy_weight: how much the entropy of hard attention counts.
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
        reward_weight: float = 1.0,
        entropy_weight: float = 0.0,
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
        for name, weight in (("reward_weight", reward_weight), ("entropy_weight", entropy_weight)):
            if not 0.0 <= weight < float("inf"):
                raise ValueError(f"{name} must be 0 or more, got {weight}.")
        self.output_proj = nn.Linear(self.output_dim, classes)
        self.dropout = dropout
        self.reward_weight, self.entropy_weight = reward_weight, entropy_weight
        self.hard = self.pooling is not None and self.pooling.selection.reinforced
        if self.hard:
            self.baseline = MovingBaseline()

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self._answer(super().forward(tokens, mask))

    def costs(self, tokens: Tensor, mask: Tensor, *, losses: Losses) -> Costs:
        """The task's loss; training adds the score-function term of hard attention, and updates its baseline."""
        pooled, reading = self.read(tokens, mask)
        logits = self._answer(pooled)
        total = losses(logits)
        if self.training and self.hard:
            assert reading is not None
            weights = {"reward_weight": self.reward_weight, "entropy_weight": self.entropy_weight}
            total = self.baseline(reading.selection, -total.float(), **weights, reduction="none")
        return Costs(logits, total)

    def _answer(self, pooled: Tensor) -> Tensor:
        logits: Tensor = self.output_proj(F.dropout(pooled, self.dropout, self.training))
        return logits
