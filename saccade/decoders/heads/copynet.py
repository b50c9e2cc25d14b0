"""The head of CopyNet."""

from __future__ import annotations

from torch import nn

from saccade.decoders.heads.base import heads
from saccade.decoders.heads.blends import SharedSoftmax
from saccade.decoders.heads.copying import CopyScored
from saccade.decoders.heads.linear import LinearHead
from saccade.decoders.heads.ways import WaysHead


@heads.register("copynet")
class CopyNetHead(WaysHead):
    r"""One softmax over the words of the vocabulary and the positions of the source.

    .. math:: p(y) = \frac{1}{Z} \Big( e^{\psi_g(y)} + \sum_{j : x_j = y} e^{\psi_c(j)} \Big), \qquad
        \psi_g(y) = v_y^\top W_o s_t, \quad \psi_c(j) = \tanh(h_j^\top W_c) s_t

    Shapes:
        features (batch, steps, input_dim) with their `Cues` -> log-probabilities (batch, steps, vocab_size + keys).

    Reference:
        Gu et al. (2016), arXiv:1603.06393, equations 5 to 8.

    Args:
        input_dim: features of the vocabulary's scores; the paper's are the decoder's state.
        state_dim, context_dim: features of the decoder's state and of the encoder's states.
        tied_to: embedding weights (vocab_size, input_dim) that are also the vocabulary's.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        vocab_size: int,
        state_dim: int,
        context_dim: int,
        tied_to: nn.Parameter | None = None,
    ) -> None:
        super().__init__(
            generate=LinearHead(input_dim=input_dim, vocab_size=vocab_size, tied_to=tied_to),
            blend=SharedSoftmax(),
            vocab_size=vocab_size,
            ways={"copy": CopyScored(key_dim=context_dim, state_dim=state_dim)},
        )
