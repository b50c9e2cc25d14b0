"""Embeddings with self-attention."""

import torch
from torch import Tensor, nn

from saccade.attention import Attention
from saccade.encoders.base import Encoder, EncoderOutput, mean_of_real


class AttendedEncoder(Encoder):
    r"""Embeddings, each concatenated with what self-attention reads from all of them.

    .. math:: \hat x_j = [x_j; c_j], \qquad c_j = \sum_i p(z_{ij} = 1)\, x_i, \qquad
        z \sim p(z \mid h), \quad h = \mathrm{network}(x)

    The network decides what is read but is not itself read: states contain only embeddings and sums of embeddings. With
    the selection "projective_tree" c_j is the soft parent of j, with "softmax" any mixture.

    Shapes:
        source (batch, length), mask bool (batch, length) -> states (batch, length, output_dim), summary
        (batch, output_dim), the mean of the states.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, section 4.1.

    Args:
        embedding: source -> (batch, length, dim).
        dim: features of the embeddings.
        network: an encoder of the embeddings (whose own embedding is `nn.Identity()`); its states are the queries and
            keys of the attention.
        attention: any attention; its values are the embeddings.
        rooted: makes the first token the root of all trees: no other token may read itself. Otherwise a tree selection
            may choose any token as the root, which then reads itself as its parent.
    """

    def __init__(
        self, *, embedding: nn.Module, dim: int, network: Encoder, attention: Attention, rooted: bool = False
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.network = network
        self.attention = attention
        self.rooted = rooted
        self.output_dim = self.summary_dim = dim + attention.aggregation.output_dim(dim)

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        embedded, mask = self.embed(source, mask)
        hidden = self.network(embedded, mask).states
        pairs = mask.unsqueeze(1)
        if self.rooted:
            pairs = pairs & _below_the_first(mask.shape[1], mask.device)
        context = self.attention(hidden, hidden, embedded, mask=pairs).context
        states = torch.cat([embedded, context], dim=-1)
        return EncoderOutput(states, mask, mean_of_real(states, mask))


def _below_the_first(length: int, device: torch.device) -> Tensor:
    """(length, length): each token may choose any but itself; the first may choose itself, which marks the root."""
    pairs = ~torch.eye(length, dtype=torch.bool, device=device)
    pairs[:1, :1] = True
    return pairs
