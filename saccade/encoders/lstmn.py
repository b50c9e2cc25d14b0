"""LSTMN encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.encoders.base import Encoder, EncoderOutput
from saccade.layers import LSTMNLayer, Tapes
from saccade.layers.recurrent import last_real
from saccade.scores import Score
from saccade.selections import Selection


class LSTMNEncoder(Encoder):
    """Layers of long short-term memory networks in which every step attends to all earlier steps.

    Shapes:
        source (batch, length), mask bool (batch, length) -> states (batch, length, hidden_dim) of the last layer,
        summary: the final state (h, c) of each layer, tensors (batch, hidden_dim).

    Reference:
        Cheng et al. (2016), arXiv:1601.06733, section 3.1.

    Args:
        embedding: source -> (batch, length, input_dim).
        input_dim: features of the embeddings.
        num_layers: the number of layers, each reading the states of the one below.
        score, selection, window, fusion: as for `LSTMNLayer`.
        dropout: applied between layers.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        input_dim: int,
        hidden_dim: int,
        num_layers: int = 1,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        window: int | None = None,
        fusion: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.embedding = embedding
        self.layers = nn.ModuleList(
            LSTMNLayer(
                input_dim=hidden_dim if i else input_dim,
                hidden_dim=hidden_dim,
                score=score,
                selection=selection,
                window=window,
                fusion=fusion,
            )
            for i in range(num_layers)
        )
        self.output_dim = self.summary_dim = hidden_dim
        self.dropout = dropout

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        tapes = self.tapes(source, mask)
        summary = tuple(last_real((each.hidden, each.cells), each.mask) for each in tapes)
        return EncoderOutput(tapes[-1].hidden, tapes[-1].mask, summary)

    def tapes(self, source: Tensor, mask: Tensor, read: Sequence[Tapes] | None = None) -> list[Tapes]:
        """The tapes of each layer; with `fusion`, each layer reads those of the same layer of another encoder."""
        inputs, mask = self.embed(source, mask)
        found: list[Tapes] = []
        for i, layer in enumerate(self.layers):
            if i:
                inputs = F.dropout(found[-1].hidden, self.dropout, self.training)
            found.append(layer(inputs, mask, None if read is None else read[i]))
        return found
