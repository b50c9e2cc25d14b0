"""Get to the point: a network that generates words or points at source words."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from torch import Tensor

from saccade.attention import Attention
from saccade.decoders import Decoded, LuongDecoder, OutputHead, ProjectSummary
from saccade.encoders import Encoder, RecurrentEncoder
from saccade.layers import RecurrentStack, TokenEmbedding
from saccade.layers.choices import make_score, make_selection
from saccade.losses import coverage_loss
from saccade.models.base import EncoderDecoder, models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("pointer_generator")
class PointerGenerator(EncoderDecoder):
    r"""A bidirectional LSTM encoder, and an LSTM decoder that generates words or copies those it attends to.

    .. math:: e_{tj} = v^\top \tanh(W_h h_j + W_s s_t + w_c \mathrm{cov}_{tj} + b), \quad
        s_t = \mathrm{LSTM}([x_t; c_{t-1}], s_{t-1}), \quad
        P_{vocab} = \operatorname{softmax}(V'(V [s_t; c_t] + b) + b')

    Training adds `coverage_weight` times the coverage loss, :math:`\sum_t \sum_j \min(a_{tj}, \mathrm{cov}_{tj})`.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps), words (batch, length) ->
        `Said` with features (batch, steps, hidden_dim). The paper: hidden_dim 256, embedding_dim 128, a vocabulary of
        50,000 words, coverage_weight 1.

    Reference:
        See et al. (2017), arXiv:1704.04368; c is its h*, and V, V' are `combine_proj` and the head's output layer.

    Args:
        score, selection: of the attention, each a short name or an instance; in the paper an additive score that sees
            the coverage ("coverage"), and softmax.
        head: how words are said; in the paper a gate decides between the vocabulary and the source.
        encoder: any other `Encoder` that keeps one position for each token.
        coverage_weight: how much looking again at the same positions costs; the paper adds it for the last steps of
            training only.
        dropout: applied to embeddings, and to features before the output.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        score: str | Score | partial[Score] = "coverage",
        selection: str | Selection | partial[Selection] = "softmax",
        head: str | OutputHead | partial[OutputHead] = "pointer_generator",
        encoder: Encoder | None = None,
        coverage_weight: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        if not 0.0 <= coverage_weight < math.inf:
            raise ValueError(f"coverage_weight must be 0 or more, got {coverage_weight}.")
        encoder = encoder or RecurrentEncoder(
            embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            cell="lstm",
            bidirectional=True,
        )
        stack = RecurrentStack(input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=1, cell="lstm")
        sizes = {"query_dim": hidden_dim, "key_dim": encoder.output_dim, "hidden_dim": hidden_dim}
        decoder = LuongDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=stack,
            attention=Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes)),
            bridge=ProjectSummary(
                summary_dim=encoder.summary_dim, hidden_dim=hidden_dim, num_states=stack.num_states, all_states=True
            ),
            context_dim=encoder.output_dim,
            feeds="context",
            readout="linear",
            head=head,
            source_vocab=source_vocab,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)
        self.coverage_weight = coverage_weight

    def penalty(
        self, decoded: Decoded, target: Tensor, real: Tensor, log_likelihood: Callable[[], Tensor]
    ) -> Tensor | None:
        if not self.coverage_weight or decoded.weights is None:
            return None
        return self.coverage_weight * coverage_loss(decoded.weights, step_mask=real, reduction="sum")
