"""Recurrent encoder."""

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.encoders.base import Encoder, EncoderOutput
from saccade.layers import RecurrentLayer
from saccade.layers.recurrent import CellName, reverse


class RecurrentEncoder(Encoder):
    """Layers of a recurrent network that read forwards, backwards or in both directions.

    Shapes:
        source (batch, length), mask bool (batch, length) -> states (batch, length, output_dim) of the last layer, each
        at the position of its token, even when read in reverse; summary: the final state of each layer, (h,) or (h, c),
        tensors (batch, output_dim), forward then backward.

    Args:
        embedding: source -> (batch, length, input_dim).
        input_dim: features of the embeddings.
        hidden_dim: features of one direction.
        num_layers: the number of layers, each reading the states of the one below.
        cell: "gru", "paper_gru" (resets before the product), "lstm" or "rcnn" (see `RCNNCell`).
        bidirectional: reads forwards and backwards, which doubles the features.
        reversed: reads from the last token to the first.
        dropout: applied between layers.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        input_dim: int,
        hidden_dim: int,
        num_layers: int = 1,
        cell: CellName = "gru",
        bidirectional: bool = False,
        reversed: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        if bidirectional and reversed:
            raise ValueError("bidirectional=True already reads both ways: omit reversed=True.")
        self.embedding = embedding
        self.output_dim = self.summary_dim = hidden_dim * (2 if bidirectional else 1)
        self.layers = nn.ModuleList(
            RecurrentLayer(
                input_dim=self.output_dim if i else input_dim,
                hidden_dim=hidden_dim,
                cell=cell,
                bidirectional=bidirectional,
            )
            for i in range(num_layers)
        )
        self.reversed = reversed
        self.dropout = dropout

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        states, mask = self.embed(source, mask)
        if self.reversed:
            states = reverse(states, mask)
        summary = []
        for i, layer in enumerate(self.layers):
            if i:
                states = F.dropout(states, self.dropout, self.training)
            states, final = layer(states, mask)
            summary.append(final)
        return EncoderOutput(reverse(states, mask) if self.reversed else states, mask, tuple(summary))
