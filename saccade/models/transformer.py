"""The Transformer."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

from torch import nn

from saccade.attention import Attention
from saccade.decoders import OutputHead, TransformerDecoder
from saccade.encoders import Encoder, TransformerEncoder
from saccade.layers import FeedForward, TokenEmbedding, TransformerDecoderLayer, TransformerEncoderLayer
from saccade.layers.choices import make_score, make_selection
from saccade.layers.transformer import NormPlace
from saccade.models.base import EncoderDecoder, models
from saccade.models.picture_encoders import PictureEncoderName, make_picture_encoder
from saccade.models.sources import embed_source
from saccade.multihead import MultiHead
from saccade.registry import nearest
from saccade.scores import ALiBi, RotaryScore, Score, T5RelativeBias
from saccade.selections import Selection

PositionKind = Literal["sinusoidal", "learned", "rotary", "relative", "alibi"]


@models.register("transformer")
class Transformer(EncoderDecoder):
    """An encoder and a decoder built from attention alone, with any score and selection in the heads.

    Shapes:
        source (batch, length), or (batch, length, source_dim), source_mask bool (batch, length), target_in (batch,
        steps) -> features (batch, steps, dim). The paper's base model: dim 512, 8 heads, 6 + 6 layers,
        feed_forward_dim 2048, post-norm, dropout 0.1.

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762.

    Args:
        source_vocab, source_dim: give exactly one: the number of source tokens, or the size of the source's feature
            vectors.
        source_stride: how many feature vectors become one source position.
        dim: features of every state.
        encoder_layers, decoder_layers: the number of layers (decoder default: the same as the encoder).
        feed_forward_dim: defaults to four times dim.
        norm: "pre" trains without warm-up; "post" is the paper's.
        positions: "sinusoidal" (the paper's) and "learned" are added to embeddings; "rotary" rotates queries and keys
            of an inner product; "relative" adds a learned bias per bucket of distances to the scores of each layer, and
            "alibi" a fixed slope. The last three apply to self-attention and add no positions to the embeddings.
        score, selection: used in the heads; a short name, or an instance for the head size (dim / num_heads), which is
            copied for every layer.
        encoder_selection: the selection of the encoder's self-attention (default: `selection`); may be a tree.
        cross_score, cross_selection: used for the attention to the source (default: `score` and `selection`).
        encoder: another encoder in place of Transformer layers, for pictures: "residual" or "patches", or any `Encoder`
            with `dim` features; source_stride and encoder_layers then only set the decoder's default.
        tied: "target" also uses the target embeddings as output weights, "all" as source embeddings too, which needs a
            joint vocabulary; "none" keeps three separate matrices.
        head: how words are said: "linear" (from the vocabulary), "pointer_generator" or "copynet", which also copy
            words of the source, "lexicon", or any `OutputHead`; what it looks at is the mean over the heads of the last
            layer's attention to the source.
        dropout: applied to embeddings and to the output of every sublayer.
        attention_dropout: applied to the weights; on a CPU it costs more time than it is worth.
        max_length: the number of learned positions.
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
        encoder: PictureEncoderName | Encoder | partial[Encoder] | None = None,
        tied: Literal["none", "target", "all"] = "target",
        head: str | OutputHead | partial[OutputHead] = "linear",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        max_length: int = 512,
    ) -> None:
        check_shape(positions, dim, num_heads)
        if tied not in ("none", "target", "all"):
            raise ValueError(f"Unknown tied {tied!r}.{nearest(tied, ('none', 'target', 'all'))}")
        if tied == "all" and source_dim is not None:
            raise ValueError(f"tied='all' shares token embeddings, got source_dim={source_dim}: use tied='target'.")
        if tied == "all" and source_vocab != target_vocab:
            raise ValueError(
                f"tied='all' needs one vocabulary, got source_vocab={source_vocab} and target_vocab={target_vocab}: "
                "use a joint tokeniser, or tied='target'."
            )

        def heads(score: Score, selection: str | Selection | partial[Selection]) -> MultiHead:
            attention = Attention(
                score=score,
                selection=make_selection(selection, **head_sizes(dim, num_heads, max_length)),
                dropout=attention_dropout,
            )
            return MultiHead(attention=attention, num_heads=num_heads, query_dim=dim)

        def self_heads(causal: bool) -> MultiHead:
            chosen = make_score(score, **head_sizes(dim, num_heads, max_length))
            own = selection if causal or encoder_selection is None else encoder_selection
            return heads(with_positions(chosen, positions, num_heads, causal), own)

        def cross_heads() -> MultiHead:
            chosen = make_score(score if cross_score is None else cross_score, **head_sizes(dim, num_heads, max_length))
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
        made = None
        if encoder is not None:
            made = make_picture_encoder(encoder, features=source_dim, dim=dim, dropout=dropout)
            if made.output_dim != dim or tied == "all":
                raise ValueError(f"encoder must have dim={dim} features and its own embeddings, got {encoder!r}.")
        elif tied != "all":
            source_embedding = embed_source(
                vocab=source_vocab, features=source_dim, stride=source_stride, dim=dim, scale=True, **embedded
            )
        made = made or TransformerEncoder(
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
            final_norm=norm == "pre",
            tied=tied != "none",
            head=head,
            source_vocab=source_vocab,
        )
        super().__init__(encoder=made, decoder=decoder)


def check_shape(positions: str, dim: int, num_heads: int) -> None:
    """Rejects unknown positions, and numbers of heads that do not suit the features or the positions."""
    choices = get_args(PositionKind)
    if positions not in choices:
        raise ValueError(f"Unknown positions {positions!r}.{nearest(positions, choices)}")
    if dim % num_heads:
        raise ValueError(f"dim={dim} is not a multiple of num_heads={num_heads}.")
    if positions == "rotary" and dim // num_heads % 2:
        raise ValueError(
            f"positions='rotary' turns pairs of features, but dim={dim} gives each of num_heads={num_heads} heads "
            f"{dim // num_heads}: set dim to a multiple of {2 * num_heads}, or choose other positions."
        )


def head_sizes(dim: int, num_heads: int, max_length: int) -> dict[str, Any]:
    """Sizes that a score or selection in the heads may need."""
    head = dim // num_heads
    return {"query_dim": head, "key_dim": head, "hidden_dim": head, "num_heads": num_heads, "max_keys": max_length}


def with_positions(score: Score, positions: PositionKind, num_heads: int, causal: bool) -> Score:
    """The score of a self-attention, with the positions that belong to scores."""
    if positions == "rotary":
        return RotaryScore(score=score)  # type: ignore[arg-type]  # it says itself what it cannot turn
    if positions == "relative":
        return score + T5RelativeBias(num_heads=num_heads, bidirectional=not causal)
    if positions == "alibi":
        return score + ALiBi(num_heads=num_heads)
    return score
