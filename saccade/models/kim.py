"""Structured attention networks."""

from __future__ import annotations

from functools import partial

from torch import nn

from saccade.attention import Attention
from saccade.decoders import LearnedStart, LuongDecoder
from saccade.encoders import AttendedEncoder, EmbeddingEncoder, Encoder, RecurrentEncoder
from saccade.layers import RecurrentStack, TokenEmbedding
from saccade.layers.choices import make_score, make_selection
from saccade.models.base import EncoderDecoder, models
from saccade.scores import AdditiveScore, Score
from saccade.selections import Selection


@models.register("kim")
class Kim(EncoderDecoder):
    r"""An LSTM decoder over source embeddings, each concatenated with what it reads from the others.

    .. math:: \hat x_j = [x_j; c_j], \quad c_j = \sum_i p(z_{ij} = 1)\, x_i, \quad
        \theta_{ij} = \tanh(s^\top \tanh(W_1 h_i + W_2 h_j + b))

    h is a bidirectional LSTM over x that is only used for the potentials \theta. With a tree selection, z is a tree
    rooted at the first token, and c_j the soft parent of j; with "softmax" each token picks independently.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps)
        -> features (batch, steps, hidden_dim).

    Reference:
        Kim et al. (2017), arXiv:1702.00887, section 4.1; the decoder attends to the \hat x_j in the usual way.

    Args:
        selection: selects what a token reads from the others; a short name or an instance; None reads nothing.
        parser_dim: units per direction of the LSTM that computes the potentials, and of their hidden layer (default:
            hidden_dim).
        score: the score of the decoder's attention; a short name or an instance; "general" is "bilinear".
        input_feeding: feeds the attentional vector to the next decoder step; without it all steps are computed at once.
        dropout: applied to embeddings and features.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        parser_dim: int | None = None,
        selection: str | Selection | partial[Selection] | None = "projective_tree",
        score: str | Score | partial[Score] = "general",
        input_feeding: bool = True,
        dropout: float = 0.0,
    ) -> None:
        embedding = TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout)
        encoder: Encoder
        if selection is None:
            encoder = EmbeddingEncoder(embedding=embedding, dim=embedding_dim)
        else:
            encoder = _attended(embedding, embedding_dim, parser_dim or hidden_dim, selection)
        stack = RecurrentStack(input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=1)
        sizes = {"query_dim": hidden_dim, "key_dim": encoder.output_dim, "hidden_dim": hidden_dim}
        decoder = LuongDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=stack,
            attention=Attention(score=make_score(score, **sizes)),
            bridge=LearnedStart(hidden_dim=hidden_dim, num_states=stack.num_states),
            context_dim=encoder.output_dim,
            input_feeding=input_feeding,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)


def _attended(
    embedding: nn.Module, dim: int, hidden_dim: int, selection: str | Selection | partial[Selection]
) -> AttendedEncoder:
    """An encoder that attends with potentials from a bidirectional LSTM."""
    network = RecurrentEncoder(
        embedding=nn.Identity(), input_dim=dim, hidden_dim=hidden_dim, cell="lstm", bidirectional=True
    )
    size = network.output_dim
    score = AdditiveScore(query_dim=size, key_dim=size, hidden_dim=hidden_dim, bias=True, activation=nn.Tanh())
    made = make_selection(selection, query_dim=size, key_dim=size, hidden_dim=hidden_dim)
    return AttendedEncoder(
        embedding=embedding,
        dim=dim,
        network=network,
        attention=Attention(score=score, selection=made),
        rooted=made is not None and made.picks_tree,
    )
