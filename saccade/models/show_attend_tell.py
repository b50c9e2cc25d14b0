"""Show, Attend and Tell: captions with visual attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from saccade.aggregations import Expectation, Gated
from saccade.attention import Attention
from saccade.decoders import Decoded, ShowAttendTellDecoder
from saccade.encoders import Encoder
from saccade.layers import MovingBaseline, TokenEmbedding
from saccade.layers.choices import make_score, make_selection
from saccade.losses import doubly_stochastic_loss
from saccade.models.base import EncoderDecoder, models
from saccade.models.picture_encoders import PictureEncoderName, make_picture_encoder
from saccade.scores import Score
from saccade.selections import Selection


@models.register("show_attend_tell")
class ShowAttendTell(EncoderDecoder):
    r"""An encoder that annotates a picture, and a decoder that attends to the annotations before each word.

    Soft attention reads their expectation through a gate; a training penalty makes it look at every place:

    .. math:: z_t = \beta_t \sum_i \alpha_{ti} a_i, \quad \beta_t = \sigma(w^\top h_{t-1} + b), \qquad
        \ell = -\log p(y) + \lambda \sum_i \Big(1 - \sum_t \alpha_{ti}\Big)^2

    Hard attention (`selection="hard"`) reads one place at a time, drawn from \alpha. Training adds the score-function
    estimate, with a moving baseline and the entropy of \alpha; see `saccade.losses.reinforce_loss`. The selection
    itself reads the expectation in place of the draw half of the time.

    Shapes:
        source (batch, length, source_dim), source_mask bool (batch, length), target_in (batch, steps) -> features
        (batch, steps, embedding_dim). The paper: 14 x 14 annotations of 512 features, embedding_dim 512, hidden_dim
        1800.

    Reference:
        Xu et al. (2015), arXiv:1502.03044. \lambda_r = 0.1 and \lambda_e = 0.002 are those of the authors' code.

    Args:
        source_dim: features of a vector of the source.
        encoder: "residual" (a small convolutional network), "patches" (a small Vision Transformer), "given" (the
            vectors themselves are the annotations), "projected" (a layer over them), or any `Encoder`.
        annotation_dim: features of an annotation, unless they are given.
        alignment_dim: of the score's hidden layer; hidden_dim by default.
        score, selection: of the attention, each a short name or an instance; additive and softmax, or hard, in the
            paper.
        gate: whether the context has the gate beta.
        doubly_stochastic: lambda, how much it counts that each place gets a weight of 1 in all. By default it is 1,
            and 0 for selections that draw, as in the paper.
        reward_weight: lambda_r, how much the score-function term counts; for selections that draw.
        entropy_weight: lambda_e, how much the entropy of such selections counts.
        dropout: applied to embeddings and in the readout.
    """

    def __init__(
        self,
        *,
        source_dim: int,
        target_vocab: int,
        encoder: PictureEncoderName | Encoder | partial[Encoder] = "residual",
        annotation_dim: int = 128,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        alignment_dim: int | None = None,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        gate: bool = True,
        doubly_stochastic: float | None = None,
        reward_weight: float = 0.1,
        entropy_weight: float = 0.002,
        dropout: float = 0.3,
        max_length: int = 1024,
    ) -> None:
        for name, weight in (
            ("doubly_stochastic", doubly_stochastic),
            ("reward_weight", reward_weight),
            ("entropy_weight", entropy_weight),
        ):
            if weight is not None and not 0.0 <= weight < float("inf"):
                raise ValueError(f"{name} must be 0 or more, got {weight}.")
        made = make_picture_encoder(encoder, features=source_dim, dim=annotation_dim, dropout=dropout)
        dim = made.output_dim
        sizes: dict[str, Any] = {
            "query_dim": hidden_dim,
            "key_dim": dim,
            "hidden_dim": alignment_dim or hidden_dim,
            "max_keys": max_length,
        }
        chosen = make_selection(selection, **sizes)
        own = None if chosen is None else chosen.default_aggregation()
        gated = Gated(query_dim=hidden_dim, aggregation=own or Expectation()) if gate else None
        decoder = ShowAttendTellDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            attention=Attention(score=make_score(score, **sizes), selection=chosen, aggregation=gated),
            hidden_dim=hidden_dim,
            context_dim=dim,
            summary_dim=made.summary_dim,
            dropout=dropout,
        )
        super().__init__(encoder=made, decoder=decoder)
        self.stochastic = decoder.attention.selection.stochastic
        self.doubly_stochastic = float(not self.stochastic) if doubly_stochastic is None else doubly_stochastic
        self.reward_weight, self.entropy_weight = reward_weight, entropy_weight
        self.reinforced = decoder.attention.selection.reinforced
        self.baseline = MovingBaseline()

    def penalty(
        self, decoded: Decoded, target: Tensor, real: Tensor, log_likelihood: Callable[[], Tensor]
    ) -> Tensor | None:
        total = None
        if self.doubly_stochastic:
            assert decoded.weights is not None
            missed = doubly_stochastic_loss(decoded.weights, step_mask=real, reduction="sum")
            total = self.doubly_stochastic * missed
        if self.reinforced:
            drawn = self._reinforced(decoded, real, log_likelihood())
            total = drawn if total is None else total + drawn
        return total

    def _reinforced(self, decoded: Decoded, real: Tensor, reward: Tensor) -> Tensor:
        """The score-function term and the entropy; updates the moving baseline.

        The reward is the mean log-probability of a token, as in the authors' code: long captions count like short ones.
        """
        mean = reward.detach() / real.sum(1).clamp(min=1)
        weights = {"reward_weight": self.reward_weight, "entropy_weight": self.entropy_weight}
        total: Tensor = self.baseline(decoded.selection, mean, **weights, step_mask=real, reduction="sum")
        return total + mean.sum()  # the value of the likelihood itself is the task's
