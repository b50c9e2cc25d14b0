"""The Transformer."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from torch import nn

from saccade.attention import Attention
from saccade.decoders import TransformerDecoder
from saccade.encoders import TransformerEncoder
from saccade.layers import FeedForward, TokenEmbedding, TransformerDecoderLayer, TransformerEncoderLayer
from saccade.layers.choices import make_score, make_selection
from saccade.layers.transformer import NormPlace
from saccade.models.base import EncoderDecoder, models
from saccade.models.sources import embed_source
from saccade.multihead import MultiHead
from saccade.registry import nearest
from saccade.scores import ALiBi, RotaryScore, Score, T5RelativeBias
from saccade.selections import Selection

PositionKind = Literal["sinusoidal", "learned", "rotary", "relative", "alibi"]


@models.register("transformer")
class Transformer(EncoderDecoder):
    """An encoder and a decoder of attention alone, with any score and any selection inside the heads.

    Shapes:
        source (batch, length), or (batch, length, source_dim), source_mask bool (batch, length), target_in (batch,
        steps) -> features (batch, steps, dim). The paper's base model: dim 512, 8 heads, 6 + 6 layers,
        feed_forward_dim 2048, post-norm, dropout 0.1.

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762.

    Args:
        source_vocab, source_dim: exactly one: the number of source tokens, or the size of the feature vectors that the
            source consists of.
        source_stride: how many feature vectors become one source position.
        dim: features of every state.
        encoder_layers, decoder_layers: how many (the decoder's default: as many as the encoder's).
        feed_forward_dim: default: four times dim.
        norm: "pre" trains without warm-up; "post" is the paper's.
        positions: "sinusoidal" (the paper's) and "learned" are added to the embeddings; "rotary" turns queries and keys
            of an inner product; "relative" adds a learned bias for buckets of distances to the scores, in each layer,
            "alibi" a fixed slope. The last three are for self-attention and leave embeddings without positions.
        score, selection: in the heads, by short name, or an instance for the head's size (dim / num_heads), of which
            every layer gets a copy.
        encoder_selection: that of the encoder's self-attention (default: the same), where a head may be a tree.
        cross_score, cross_selection: those of the attention to the source (default: the same).
        tied: "target" uses the target embeddings as output weights too, "all" also as source embeddings, which needs
            one vocabulary; "none" keeps three matrices.
        dropout: of embeddings and of what every sublayer adds.
        attention_dropout: of the weights; costs more time than it gives on a CPU.
        max_length: of learned positions.
    """

    def __init__(
        self,
        *,
        source_vocab: int | None = None,
        source_dim: int | None = None,
        source_stride: int = 1,
        target_vocab: int,
        dim: int = 128,
        num_heads: int = 4,
        encoder_layers: int = 4,
        decoder_layers: int | None = None,
        feed_forward_dim: int | None = None,
        activation: Literal["relu", "gelu"] = "relu",
        norm: NormPlace = "pre",
        positions: PositionKind = "sinusoidal",
        score: str | Score | partial[Score] = "scaled_dot",
        selection: str | Selection | partial[Selection] = "softmax",
        encoder_selection: str | Selection | partial[Selection] | None = None,
        cross_score: str | Score | partial[Score] | None = None,
        cross_selection: str | Selection | partial[Selection] | None = None,
        tied: Literal["none", "target", "all"] = "target",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        max_length: int = 512,
    ) -> None:
        choices = ("sinusoidal", "learned", "rotary", "relative", "alibi")
        if positions not in choices:
            raise ValueError(f"Unknown positions {positions!r}.{nearest(positions, choices)}")
        if tied not in ("none", "target", "all"):
            raise ValueError(f"Unknown tied {tied!r}.{nearest(tied, ('none', 'target', 'all'))}")
        if tied == "all" and source_dim is not None:
            raise ValueError(f"tied='all' shares token embeddings, got source_dim={source_dim}: use tied='target'.")
        if tied == "all" and source_vocab != target_vocab:
            raise ValueError(
                f"tied='all' needs one vocabulary, got source_vocab={source_vocab} and target_vocab={target_vocab}: "
                "use a joint tokeniser, or tied='target'."
            )
        if dim % num_heads:
            raise ValueError(f"dim={dim} is not a multiple of num_heads={num_heads}.")

        def heads(score: Score, selection: str | Selection | partial[Selection]) -> MultiHead:
            attention = Attention(
                score=score,
                selection=make_selection(selection, **_sizes(dim, num_heads, max_length)),
                dropout=attention_dropout,
            )
            return MultiHead(attention=attention, num_heads=num_heads, query_dim=dim)

        def self_heads(causal: bool) -> MultiHead:
            chosen = make_score(score, **_sizes(dim, num_heads, max_length))
            own = selection if causal or encoder_selection is None else encoder_selection
            return heads(_with_positions(chosen, positions, num_heads, causal), own)

        def cross_heads() -> MultiHead:
            chosen = make_score(score if cross_score is None else cross_score, **_sizes(dim, num_heads, max_length))
            return heads(chosen, selection if cross_selection is None else cross_selection)

        def feed_forward() -> FeedForward:
            return FeedForward(dim=dim, hidden_dim=feed_forward_dim or 4 * dim, activation=activation)

        embedded: dict[str, Any] = {
            "positions": positions if positions in ("sinusoidal", "learned") else None,
            "max_length": max_length,
            "dropout": dropout,
        }
        target_embedding = TokenEmbedding(vocab_size=target_vocab, dim=dim, scale=True, **embedded)
        source_embedding: nn.Module = target_embedding
        if tied != "all":
            source_embedding = embed_source(
                vocab=source_vocab, features=source_dim, stride=source_stride, dim=dim, scale=True, **embedded
            )
        encoder = TransformerEncoder(
            embedding=source_embedding,
            layers=[
                TransformerEncoderLayer(
                    self_attention=self_heads(False), feed_forward=feed_forward(), norm=norm, dropout=dropout
                )
                for _ in range(encoder_layers)
            ],
            dim=dim,
            final_norm=norm == "pre",
        )
        decoder = TransformerDecoder(
            embedding=target_embedding,
            layers=[
                TransformerDecoderLayer(
                    self_attention=self_heads(True),
                    cross_attention=cross_heads(),
                    feed_forward=feed_forward(),
                    norm=norm,
                    dropout=dropout,
                )
                for _ in range(encoder_layers if decoder_layers is None else decoder_layers)
            ],
            dim=dim,
            vocab_size=target_vocab,
            final_norm=norm == "pre",
            tied=tied != "none",
        )
        super().__init__(encoder=encoder, decoder=decoder)


def _sizes(dim: int, num_heads: int, max_length: int) -> dict[str, Any]:
    """What a score or a selection in the heads may want to know."""
    head = dim // num_heads
    return {"query_dim": head, "key_dim": head, "hidden_dim": head, "num_heads": num_heads, "max_keys": max_length}


def _with_positions(score: Score, positions: PositionKind, num_heads: int, causal: bool) -> Score:
    if positions == "rotary":
        return RotaryScore(score=score)  # type: ignore[arg-type]  # it says itself what it cannot turn
    if positions == "relative":
        return score + T5RelativeBias(num_heads=num_heads, bidirectional=not causal)
    if positions == "alibi":
        return score + ALiBi(num_heads=num_heads)
    return score
