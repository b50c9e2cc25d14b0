"""LSTMN language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from saccade.checks import check_count, check_share
from saccade.decoders import Step
from saccade.decoders.base import index_state
from saccade.decoders.heads import OutputHead
from saccade.layers import LSTMNLayer, LSTMNState, TokenEmbedding
from saccade.layers.dropout import locked_dropout
from saccade.layers.tapes import CarriedTapes
from saccade.models.base import LanguageModel, models
from saccade.models.lstm_language_model import check_causal, word_head
from saccade.scores import Score
from saccade.selections import Selection


@models.register("lstmn_lm")
class LSTMNLanguageModel(LanguageModel):
    """LSTM layers over a text, in which each step attends to all earlier states instead of keeping one.

    Shapes:
        tokens (batch, length), mask bool (batch, length), True = real, padding last -> features (batch, length, dim),
        which `head` turns into logits (batch, length, vocab).

    Reference:
        Cheng et al. (2016), arXiv:1601.06733, sections 3.1 and 5.1.

    Args:
        dim: features of the embeddings and of all states.
        num_layers: each reads the states of the one below.
        score, selection: of the attention to earlier states; see `LSTMNLayer`.
        window: how many earlier states a step may attend to, those of earlier pieces of a text among them.
        tied: whether the embeddings are also the output weights.
        dropout: of the inputs and outputs of layers, the same features at all positions of a text.
    """

    def __init__(
        self,
        *,
        vocab: int,
        causal: bool = True,
        dim: int = 200,
        num_layers: int = 1,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        window: int = 50,
        tied: bool = True,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        check_causal(self, causal)
        check_count("num_layers", num_layers)
        check_share("dropout", dropout)
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=dim)
        self.layers = nn.ModuleList(
            LSTMNLayer(input_dim=dim, hidden_dim=dim, score=score, selection=selection, window=window)
            for _ in range(num_layers)
        )
        self.head: OutputHead = word_head(self.embedding, tied)
        self.dropout = dropout

    def _layers(self) -> list[LSTMNLayer]:
        return [layer for layer in self.layers if isinstance(layer, LSTMNLayer)]

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.embedding(tokens)
        for layer in self._layers():
            states = layer(locked_dropout(states, self.dropout, self.training), mask).hidden
        return locked_dropout(states, self.dropout, self.training)

    def read(
        self, tokens: Tensor, mask: Tensor, carried: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The states of the last layer, and the tapes and last read of each as `tapes0`, `read0`, `tapes1`, ..."""
        states: Tensor = self.embedding(tokens)
        after: dict[str, Tensor] = {}
        for number, layer in enumerate(self._layers()):
            past = CarriedTapes(carried[f"tapes{number}"], carried[f"read{number}"]) if carried else None
            states, left = layer.resume(locked_dropout(states, self.dropout, self.training), past)
            after |= {f"tapes{number}": left.tapes, f"read{number}": left.read}
        return locked_dropout(states, self.dropout, self.training), after

    def begin(self, encoded: Any) -> tuple[LSTMNState, ...]:
        like = self.embedding.weight
        return tuple(layer.begin(encoded.mask.shape[0], like=like) for layer in self._layers())

    def step(self, tokens: Tensor, state: Sequence[LSTMNState]) -> Step:
        inputs, after = self.embedding(tokens.unsqueeze(1)).squeeze(1), []
        for layer, before in zip(self._layers(), state, strict=True):
            after.append(layer.step(inputs, before))
            inputs = after[-1].hidden
        return Step((self.head, inputs), tuple(after))

    def reorder(self, state: Sequence[LSTMNState], rows: Tensor) -> Any:
        return index_state(tuple(state), rows)
