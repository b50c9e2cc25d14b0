"""LSTM language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from saccade.checks import check_count, check_share
from saccade.decoders import Step
from saccade.decoders.base import index_state
from saccade.decoders.heads import AdaptiveHead, LinearHead, OutputHead
from saccade.layers import TokenEmbedding
from saccade.layers.cell import CellState
from saccade.layers.dropout import drop_words, locked_dropout
from saccade.layers.recurrent import RecurrentLayer
from saccade.models.base import LanguageModel, models


@models.register("lstm_lm")
class LSTMLanguageModel(LanguageModel):
    """LSTM layers over a text; each token is predicted from the state after the tokens before it.

    Shapes:
        tokens (batch, length), mask bool (batch, length), True = real, padding last -> features (batch, length, dim),
        which `head` turns into logits (batch, length, vocab).

    Reference:
        Zaremba et al. (2014), arXiv:1409.2329; tied weights: Press and Wolf (2017), arXiv:1608.05859; dropout of
        features, words and recurrent weights: Merity et al. (2018), arXiv:1708.02182.

    Args:
        dim: features of the embeddings and of the last layer, whose states meet the embeddings again if they are tied.
        hidden_dim: features of the other layers; dim by default.
        num_layers: each reads the states of the one below.
        tied: whether the embeddings are also the output weights.
        cutoffs: for a large vocabulary, an adaptive softmax whose clusters of rare words begin with these ids (see
            `AdaptiveHead`); needs tied to be false.
        dropout: of the inputs and outputs of layers, the same features at all positions of a text.
        word_dropout: the share of the vocabulary that is dropped from a batch.
        weight_drop: the share of recurrent weights that is dropped for a batch.
    """

    def __init__(
        self,
        *,
        vocab: int,
        causal: bool = True,
        dim: int = 200,
        hidden_dim: int | None = None,
        num_layers: int = 2,
        tied: bool = True,
        cutoffs: Sequence[int] | None = None,
        dropout: float = 0.2,
        word_dropout: float = 0.0,
        weight_drop: float = 0.0,
    ) -> None:
        super().__init__()
        check_causal(self, causal)
        check_count("num_layers", num_layers)
        for name, share in (("dropout", dropout), ("word_dropout", word_dropout), ("weight_drop", weight_drop)):
            check_share(name, share)
        inner = hidden_dim or dim
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=dim)
        sizes = [dim, *[inner] * (num_layers - 1), dim]
        self.layers = nn.ModuleList(
            RecurrentLayer(input_dim=sizes[number], hidden_dim=sizes[number + 1], cell="lstm")
            for number in range(num_layers)
        )
        self.head: OutputHead = word_head(self.embedding, tied, cutoffs)
        self.dropout, self.word_dropout, self.weight_drop = dropout, word_dropout, weight_drop
        self.vocab = vocab

    def _layers(self) -> list[RecurrentLayer]:
        return [layer for layer in self.layers if isinstance(layer, RecurrentLayer)]

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.read(tokens, mask)[0]

    def read(
        self, tokens: Tensor, mask: Tensor, carried: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The states of the last layer, and the last state of each as `h0`, `c0`, `h1`, ..."""
        states = drop_words(self.embedding(tokens), tokens, self.vocab, self.word_dropout, self.training)
        after: dict[str, Tensor] = {}
        for number, layer in enumerate(self._layers()):
            start = (carried[f"h{number}"], carried[f"c{number}"]) if carried else None
            states = locked_dropout(states, self.dropout, self.training)
            states, last = layer.resume(states, start, weight_drop=self.weight_drop)
            after |= {f"{name}{number}": each.detach() for name, each in zip("hc", last, strict=True)}
        return locked_dropout(states, self.dropout, self.training), after

    def begin(self, encoded: Any) -> tuple[CellState, ...]:
        batch, like = encoded.mask.shape[0], self.embedding.weight
        return tuple(layer.cell.zeros(batch, like=like) for layer in self._layers())

    def advance(self, tokens: Tensor, state: Sequence[CellState]) -> tuple[CellState, ...]:
        """The states of all layers after one more token (batch,)."""
        inputs, after = self.embedding(tokens.unsqueeze(1)).squeeze(1), []
        for layer, before in zip(self._layers(), state, strict=True):
            after.append(layer.step(inputs, before))
            inputs = after[-1][0]
        return tuple(after)

    def step(self, tokens: Tensor, state: Sequence[CellState]) -> Step:
        after = self.advance(tokens, state)
        return Step((self.head, after[-1][0]), after)

    def reorder(self, state: Sequence[CellState], rows: Tensor) -> Any:
        return index_state(tuple(state), rows)


def word_head(embedding: TokenEmbedding, tied: bool, cutoffs: Sequence[int] | None = None) -> OutputHead:
    """An output head over the words of an embedding, whose vectors it may share."""
    vocab, dim = embedding.weight.shape
    if cutoffs is not None:
        if tied:
            raise ValueError(
                "cutoffs give rare words fewer output features than their embeddings have: set tied to false."
            )
        return AdaptiveHead(input_dim=dim, vocab_size=vocab, cutoffs=cutoffs)
    return LinearHead(input_dim=dim, vocab_size=vocab, bias=not tied, tied_to=embedding.weight if tied else None)


def check_causal(model: nn.Module, causal: bool) -> None:
    """Raises for a task that masks tokens."""
    if not causal:
        raise ValueError(f"{type(model).__name__} reads a text from its beginning: leave task.causal at true.")
