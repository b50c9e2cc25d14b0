"""A recurrent decoder that sees the source only through its initial state."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.heads import LinearHead
from saccade.encoders import EncoderOutput
from saccade.layers import RecurrentStack, TokenEmbedding
from saccade.layers.cell import CellState


class RecurrentDecoder(Decoder):
    r"""A recurrent decoder that starts from the encoder's final states.

    .. math:: h_t = \mathrm{RNN}(e_{t-1}, h_{t-1}), \qquad p = \operatorname{softmax}(W h_t)

    Shapes:
        tokens (batch, steps) -> features (batch, steps, hidden_dim).

    Reference:
        Sutskever et al. (2014), arXiv:1409.3215, section 2.

    Args:
        embedding: tokens -> (batch, steps, input_dim of the stack).
        bridge: maps the encoder's summary to the initial states: `CopyStates` or `ProjectSummary`.
    """

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        stack: RecurrentStack,
        bridge: nn.Module,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.stack = stack
        self.bridge = bridge
        self.dropout = dropout
        self.head = LinearHead(input_dim=stack.hidden_dim, vocab_size=self.vocab_size)

    def begin(self, encoded: EncoderOutput) -> tuple[CellState, ...]:
        states: tuple[CellState, ...] = self.bridge(encoded.summary)
        return states

    def step(self, tokens: Tensor, state: tuple[CellState, ...]) -> Step:
        hidden, state = self.stack.step(self.stack.first.input_proj(self.embedding(tokens)), state)
        return Step((self.head, hidden), state)

    def forward(self, encoded: EncoderOutput, tokens: Tensor) -> Decoded:
        hidden = self.stack(self.embedding(tokens), self.begin(encoded))
        return Decoded(F.dropout(hidden, self.dropout, self.training))
