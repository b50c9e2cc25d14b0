"""Transformer language models."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade import masks
from saccade.attention import Attention, check_growing
from saccade.checks import check_count
from saccade.decoders import Step
from saccade.decoders.base import index_state
from saccade.decoders.heads import LinearHead
from saccade.layers import FeedForward, TokenEmbedding, TransformerEncoderLayer
from saccade.layers.choices import make_score, make_selection
from saccade.layers.transformer import Activation, NormPlace, empty_cache
from saccade.memory import Memory
from saccade.models.base import LanguageModel, models
from saccade.models.transformer import PositionKind, check_shape, head_sizes, with_positions
from saccade.multihead import MultiHead
from saccade.scores import Score
from saccade.selections import Selection


class Beginnings(NamedTuple):
    """The start of a search: only the number of texts."""

    mask: Tensor
    """bool (batch, 0): there is no source to attend to."""


class LanguageModelState(NamedTuple):
    """The past of each text, and the states of the attentions to it; `rows` is as in `TransformerState`."""

    rows: Tensor | None
    cache: tuple[Memory, ...]
    attention: tuple[Any, ...]


@models.register("transformer_lm")
class TransformerLanguageModel(LanguageModel):
    """Transformer layers over one text, with any score and selection in the heads.

    A causal model sees only the tokens before each position and predicts the next one: it can continue a text. One that
    is not causal sees the whole text and predicts tokens that were masked.

    Shapes:
        tokens (batch, length), mask bool (batch, length), True = real, padding last -> features (batch, length, dim),
        which `head` turns into logits (batch, length, vocab).

    Reference:
        Causal: Radford et al. (2018), "Improving language understanding by generative pre-training"; masked: Devlin et
        al. (2019), arXiv:1810.04805.

    Args:
        causal: whether a position sees only itself and the positions before it.
        dim: features of every state.
        feed_forward_dim: defaults to four times dim.
        norm: "pre" trains without warm-up; "post" is that of the first papers.
        positions: "sinusoidal" and "learned" are added to embeddings; "rotary", "relative" and "alibi" are part of the
            scores (see `Transformer`).
        score, selection: used in the heads; a short name, or an instance for the head size (dim / num_heads).
        tied: whether the embeddings are also the output weights.
        dropout: applied to embeddings and to the output of every sublayer.
        attention_dropout: applied to the weights; on a CPU it costs more time than it is worth.
        max_length: the number of learned positions.
        scale_embeddings: whether embeddings are multiplied by the square root of dim before positions are added.
        output_bias: whether the logits have a bias.
        epsilon: of the layer normalisations.
    """

    def __init__(
        self,
        *,
        vocab: int,
        causal: bool,
        dim: int = 128,
        num_heads: int = 4,
        num_layers: int = 4,
        feed_forward_dim: int | None = None,
        activation: Activation = "gelu",
        norm: NormPlace = "pre",
        positions: PositionKind = "sinusoidal",
        score: str | Score | partial[Score] = "scaled_dot",
        selection: str | Selection | partial[Selection] = "softmax",
        tied: bool = True,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        max_length: int = 512,
        scale_embeddings: bool = True,
        output_bias: bool = False,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        check_shape(positions, dim, num_heads)
        check_count("num_layers", num_layers)
        sizes = head_sizes(dim, num_heads, max_length)

        def layer() -> TransformerEncoderLayer:
            attention = Attention(
                score=with_positions(make_score(score, **sizes), positions, num_heads, causal),
                selection=make_selection(selection, **sizes),
                dropout=attention_dropout,
            )
            heads = MultiHead(attention=attention, num_heads=num_heads, query_dim=dim)
            if causal:
                check_growing(attention)
            feed_forward = FeedForward(dim=dim, hidden_dim=feed_forward_dim or 4 * dim, activation=activation)
            options: dict[str, Any] = {"norm": norm, "dropout": dropout, "epsilon": epsilon}
            return TransformerEncoderLayer(self_attention=heads, feed_forward=feed_forward, **options)

        self.causal = causal
        self.embedding = TokenEmbedding(
            vocab_size=vocab,
            dim=dim,
            scale=scale_embeddings,
            positions=positions if positions in ("sinusoidal", "learned") else None,
            max_length=max_length,
            dropout=dropout,
        )
        self.layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(dim, eps=epsilon) if norm == "pre" else nn.Identity()
        tied_to = self.embedding.weight if tied else None
        self.head = LinearHead(input_dim=dim, vocab_size=vocab, bias=output_bias, tied_to=tied_to)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        # Padding comes last, so a causal mask alone keeps real positions from seeing it.
        seen = masks.causal() if self.causal else mask.unsqueeze(1)
        states = self.embedding(tokens)
        for layer in self.layers:
            states = layer(states, seen)
        features: Tensor = self.final_norm(states)
        return features

    def _layers(self) -> list[TransformerEncoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, TransformerEncoderLayer)]

    def begin(self, encoded: Any) -> LanguageModelState:
        """The state before the first token of as many texts as `encoded.mask` has rows."""
        if not self.causal:
            raise ValueError("A model that is not causal fills in masked tokens; it cannot continue a text.")
        like = self.embedding.weight.new_zeros(encoded.mask.shape[0], 0)
        caches = tuple(empty_cache(layer.self_attention, like) for layer in self._layers())
        return LanguageModelState(None, caches, (None,) * len(caches))

    def step(self, tokens: Tensor, state: LanguageModelState) -> Step:
        """Advances one step after tokens (batch,)."""
        states = self.embedding(tokens.unsqueeze(1), start=state.cache[0].num_keys)
        caches, attentions = [], []
        for layer, cache, attention in zip(self._layers(), state.cache, state.attention, strict=True):
            states, cache, attention = layer.step(states, cache, attention, rows=state.rows)
            caches.append(cache)
            attentions.append(attention)
        features = self.final_norm(states).squeeze(1)
        return Step((self.head, features), LanguageModelState(None, tuple(caches), tuple(attentions)))

    def reorder(self, state: LanguageModelState, rows: Tensor) -> LanguageModelState:
        """Selects rows of the state; the past is reordered as it grows."""
        order = rows if state.rows is None else state.rows.index_select(0, rows)
        return state._replace(rows=order, attention=index_state(state.attention, rows))
