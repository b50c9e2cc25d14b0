"""BERT."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.checks import check_count
from saccade.decoders.heads import OutputHead
from saccade.encoders.base import mean_of_real
from saccade.kernels.cross_entropy import CrossEntropy, linear_cross_entropy
from saccade.kernels.modes import exporting
from saccade.layers import FeedForward, TokenEmbedding, TransformerEncoderLayer
from saccade.layers.choices import make_score, make_selection
from saccade.layers.initialisation import truncated_normal
from saccade.models.base import TextEncoder, models
from saccade.models.transformer import check_shape, head_sizes
from saccade.models.unpadded import Unpadded
from saccade.models.windows import Windows, unpadded_states
from saccade.multihead import MultiHead
from saccade.registry import nearest
from saccade.scores import QueryFreeScore, Score
from saccade.selections import Selection, Softmax

Head = Literal["label", "tokens", "span", "pretraining", "none"]
Pooling = Literal["cls", "mean", "attention"]


class BertStates(NamedTuple):
    """The output of BERT's encoder."""

    states: Tensor
    """(batch, length, dim)."""

    pooled: Tensor
    """(batch, dim): one vector for each text."""


@models.register("bert")
class Bert(TextEncoder):
    r"""A Transformer encoder over one text or a pair of texts, and a head for one of several tasks.

    .. math:: h^0 = \mathrm{LN}(E_{x_t} + P_t + S_{s_t}), \qquad h^l = \mathrm{layer}(h^{l-1}), \qquad
        c = \tanh(W h^L_1 + b)

    Layers normalise after the sum (post-norm) and use GELU. x_t are the tokens, the first of them `[CLS]`, and s_t says
    which text a token belongs to.

    Shapes:
        tokens (batch, length), mask bool (batch, length), True = real, segments (batch, length), 0 or 1
        -> logits: (batch, classes) for a label, (batch, length, classes) for tokens, (batch, length, 2) for the start
        and the end of a span, (batch, length, vocab) for masked tokens. `read` gives the states before the head.

    Reference:
        Devlin et al. (2019), arXiv:1810.04805. The base model: dim 768, 12 heads, 12 layers.

    Args:
        head: "label" classifies the whole text, "tokens" each token, "span" finds a part of the text, "pretraining"
            predicts masked tokens and whether the second text follows the first. "none" is an encoder alone.
        pooling: how a text becomes one vector: "cls" is the paper's c, "mean" the mean of all states, "attention" a
            mean weighted by a learned query, as in `pooling` and `han`, whose weights show what decided.
        feed_forward_dim: defaults to four times dim.
        num_segments: how many texts an input may consist of.
        max_length: the number of learned positions.
        window: longer texts are read in windows of this many tokens, each of which begins with `[CLS]` and attends to
            itself alone; what is pooled are the states of all of them. For texts of any length, and in a time that
            grows with their length, not with its square. None reads a text as a whole.
        frozen_layers: the embeddings and this many layers, from the first, stay as they are in training.
        score, selection: used in the heads; a short name, or an instance for the head size (dim / num_heads).
        dropout: applied to embeddings, to the output of every sublayer and before the classifier.
        attention_dropout: applied to the weights; on a CPU it costs more time than it is worth.
        epsilon: of the layer normalisations.
    """

    inherited: ClassVar[tuple[str, ...]] = (
        "dim", "num_heads", "num_layers", "feed_forward_dim", "activation", "num_segments", "max_length", "score",
        "selection", "epsilon",
    )  # fmt: skip
    """The arguments that a model inherits from the one whose weights it starts from."""

    def __init__(
        self,
        *,
        vocab: int,
        classes: int | None = None,
        head: Head = "label",
        pooling: Pooling = "cls",
        dim: int = 128,
        num_heads: int = 2,
        num_layers: int = 2,
        feed_forward_dim: int | None = None,
        activation: Literal["relu", "gelu"] = "gelu",
        num_segments: int = 2,
        max_length: int = 512,
        window: int | None = None,
        frozen_layers: int = 0,
        score: str | Score | partial[Score] = "scaled_dot",
        selection: str | Selection | partial[Selection] = "softmax",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        check_shape("learned", dim, num_heads)
        for name, count in (("num_layers", num_layers), ("num_segments", num_segments), ("max_length", max_length)):
            check_count(name, count)
        if head not in get_args(Head):
            raise ValueError(f"Unknown head {head!r}.{nearest(head, get_args(Head))}")
        if pooling not in get_args(Pooling):
            raise ValueError(f"pooling must be 'cls', 'mean' or 'attention', got {pooling!r}.")
        if (classes is not None) != (head in ("label", "tokens")):
            raise ValueError(f"head={head!r} and classes={classes} do not go together.")
        if window is not None and not 2 <= window <= max_length:
            raise ValueError(f"window must be from 2 to the {max_length} positions of max_length, got {window}.")
        if not 0 <= frozen_layers <= num_layers:
            raise ValueError(f"frozen_layers must be from 0 to num_layers={num_layers}, got {frozen_layers}.")
        pools = head not in ("tokens", "span")
        if window is not None and pooling == "cls" and pools:
            raise ValueError(
                "pooling='cls' sees only the first window of a text: set pooling to 'mean' or 'attention', or leave "
                f"window={window} out."
            )
        sizes = head_sizes(dim, num_heads, max_length)

        def layer() -> TransformerEncoderLayer:
            attention = Attention(
                score=make_score(score, **sizes),
                selection=make_selection(selection, **sizes),
                dropout=attention_dropout,
            )
            return TransformerEncoderLayer(
                self_attention=MultiHead(attention=attention, num_heads=num_heads, query_dim=dim),
                feed_forward=FeedForward(dim=dim, hidden_dim=feed_forward_dim or 4 * dim, activation=activation),
                norm="post",
                dropout=dropout,
                epsilon=epsilon,
            )

        self.pooling = pooling
        self.window = window
        self.dropout = dropout
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=dim, positions="learned", max_length=max_length)
        self.segments = nn.Embedding(num_segments, dim)
        self.norm = nn.LayerNorm(dim, eps=epsilon)
        self.layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.pooler = nn.Linear(dim, dim) if pooling == "cls" and pools else None
        self.reader: Attention | None = None
        if pooling == "attention" and pools:
            self.reader = Attention(score=QueryFreeScore(key_dim=dim, hidden_dim=dim), selection=Softmax())
        self.classifier = nn.Linear(dim, classes or 2) if head in ("label", "tokens", "span") else None
        self.masked = MaskedHead(self.embedding.weight, epsilon=epsilon) if head == "pretraining" else None
        self.next_sentence = nn.Linear(dim, 2) if head == "pretraining" else None
        self.head = head
        truncated_normal(self, std=0.02)
        if frozen_layers:
            for part in (self.embedding, self.segments, self.norm, *self.layers[:frozen_layers]):
                part.requires_grad_(False)

    def forward(self, tokens: Tensor, mask: Tensor, segments: Tensor | None = None) -> Tensor:
        states, pooled = self.read(tokens, mask, segments)
        if self.masked is not None:
            return self.masked(states)  # type: ignore[no-any-return]
        if self.classifier is None:
            raise ValueError("This BERT has no head and gives no logits: call `read` for its states.")
        features = pooled if self.head == "label" else states
        logits: Tensor = self.classifier(F.dropout(features, self.dropout, self.training))
        return logits

    def read(self, tokens: Tensor, mask: Tensor, segments: Tensor | None = None) -> BertStates:
        """The states of all tokens and the vector of each text, before any head; shapes as for `forward`."""
        if self.window is None or (not exporting() and tokens.shape[1] <= self.window):
            states = self._states(tokens, mask, segments)
        else:
            windows = Windows.of(tokens, mask, segments, self.window)
            states = windows.joined(self._states(windows.tokens, windows.mask, windows.segments), *tokens.shape)
        return BertStates(states, self.pool(states, mask))

    def _states(self, tokens: Tensor, mask: Tensor, segments: Tensor | None) -> Tensor:
        states = self.embed(tokens, segments)
        for layer in self.layers:
            states = layer(states, mask.unsqueeze(1))
        return states

    def longest(self) -> int | None:
        """The maximum number of positions; None with windows, which read texts of any length."""
        return None if self.window is not None else super().longest()

    def vectors(self, texts: Sequence[Sequence[int]], first: Sequence[int] | None = None) -> Tensor:
        """(texts, dim): each text as one vector, computed without padding and without gradients (see `Unpadded`).

        Args:
            texts: the ids of each, with the special ones.
            first: how many tokens of each belong to the first of two texts; all by default.
        """
        was_training = self.training
        try:
            unpadded = Unpadded(self.eval())
            if self.window is None:
                return unpadded.vectors(texts, first)
            states = unpadded_states(unpadded.states, texts, first, self.window)
            with torch.no_grad():
                return torch.cat([self.pool(each, each.new_ones(each.shape[:2]).bool()) for each in states])
        finally:
            self.train(was_training)

    def embed(self, tokens: Tensor, segments: Tensor | None = None, places: Tensor | None = None) -> Tensor:
        """h^0 (*batch, length, dim).

        Args:
            tokens: (*batch, length).
            segments: of the same shape; without them, all tokens belong to the first text.
            places: the position of each token, if not from 0 to length - 1.
        """
        if segments is None:
            apart: Tensor = self.segments.weight[0]
        else:
            count = self.segments.num_embeddings
            if not exporting() and segments.numel() and not 0 <= int(segments.min()) <= int(segments.max()) < count:
                raise ValueError(
                    f"segments must be from 0 to {count - 1}, got {int(segments.min())} to {int(segments.max())}: the "
                    f"model has num_segments={count}."
                )
            apart = self.segments(segments)
        return F.dropout(self.norm(self.embedding(tokens, places=places) + apart), self.dropout, self.training)

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """The vector (batch, dim) of each text."""
        if self.pooler is not None:
            return torch.tanh(self.pooler(states[:, 0]))
        if self.reader is None:
            return mean_of_real(states, mask)
        context: Tensor = self.reader(None, states, mask=mask.unsqueeze(1)).context
        return context.squeeze(1)


class MaskedHead(OutputHead):
    r"""Predicts masked tokens; the embeddings are also the output weights.

    .. math:: E\, \mathrm{LN}(\mathrm{gelu}(W h + b)) + c

    Shapes:
        states (*, dim) -> logits (*, vocab).
    """

    def __init__(self, embeddings: nn.Parameter, *, epsilon: float = 1e-12) -> None:
        super().__init__()
        vocab, dim = embeddings.shape
        self.proj = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=epsilon)
        self.weight = embeddings
        self.bias = nn.Parameter(torch.zeros(vocab))

    def logits(self, features: Tensor) -> Tensor:
        return F.linear(self._changed(features), self.weight, self.bias)

    def loss(self, features: Tensor, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        changed = self._changed(features)
        return linear_cross_entropy(changed, self.weight, self.bias, targets, smoothing=smoothing, first=first)

    def _changed(self, states: Tensor) -> Tensor:
        changed: Tensor = self.norm(F.gelu(self.proj(states)))
        return changed
