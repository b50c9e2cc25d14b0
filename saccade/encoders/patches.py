"""Pictures as sequences of patches, and other vectors, projected or as they are."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.checks import check_count, check_share
from saccade.encoders.base import Encoder, EncoderOutput, encoders, mean_of_real
from saccade.encoders.grid import GridEncoder, GridPositions, lines_of
from saccade.layers import FeedForward, TransformerEncoderLayer
from saccade.layers.choices import make_score, make_selection
from saccade.multihead import MultiHead
from saccade.scores import Score
from saccade.selections import Selection


@encoders.register("patches")
class PatchEncoder(GridEncoder):
    r"""A Transformer over the patches of a picture (ViT), without a class token: each patch is an annotation.

    .. math:: x_{ij} = W p_{ij} + b + \pi_{ij}

    Shapes:
        source (batch, patches, 3 patch²), mask bool (batch, patches) -> states (batch, patches, dim), summary (batch,
        dim), the mean of the states.

    Reference:
        Dosovitskiy et al. (2021), arXiv:2010.11929.

    Args:
        patch: the side of the patches that the source consists of, in pixels.
        dim: features of an annotation.
        num_layers, num_heads: of the Transformer.
        score, selection: of its heads, each a short name or an instance.
        dropout: applied to embeddings and to the output of every sublayer.
    """

    def __init__(
        self,
        *,
        patch: int,
        dim: int,
        num_layers: int = 4,
        num_heads: int = 4,
        score: str | Score | partial[Score] = "scaled_dot",
        selection: str | Selection | partial[Selection] = "softmax",
        dropout: float = 0.1,
    ) -> None:
        super().__init__(patch=patch)
        for name, count in (("dim", dim), ("num_heads", num_heads)):
            check_count(name, count)
        if dim % num_heads:
            raise ValueError(f"dim={dim} is not a multiple of num_heads={num_heads}.")
        head = dim // num_heads
        sizes = {"query_dim": head, "key_dim": head, "hidden_dim": head, "num_heads": num_heads}

        def layer() -> TransformerEncoderLayer:
            attention = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
            return TransformerEncoderLayer(
                self_attention=MultiHead(attention=attention, num_heads=num_heads, query_dim=dim),
                feed_forward=FeedForward(dim=dim, hidden_dim=4 * dim, activation="gelu"),
                norm="pre",
                dropout=dropout,
            )

        self.patch_proj = nn.Linear(3 * patch**2, dim)
        self.places = GridPositions(dim=dim)
        self.layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(dim)
        self.dropout = dropout
        self.output_dim = self.summary_dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        lines = lines_of(source, self.patch)
        places = self.places(lines, lines).flatten(1).T
        states = F.dropout(self.patch_proj(source) + places, self.dropout, self.training)
        for layer in self.layers:
            states = layer(states, mask.unsqueeze(1))
        states = self.final_norm(states)
        return EncoderOutput(states, mask, mean_of_real(states, mask))

    def grid(self, side: int) -> int:
        return side // self.patch


@encoders.register("given")
class GivenEncoder(Encoder):
    """Feature vectors as they are, such as those of a backbone that is not trained.

    Shapes:
        source (batch, length, dim), mask bool (batch, length) -> states (batch, length, dim), the same, summary (batch,
        dim), their mean.
    """

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        check_count("dim", dim)
        self.output_dim = self.summary_dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        _check_vectors(source, self.output_dim)
        return EncoderOutput(source, mask, mean_of_real(source, mask))

    def positions(self, mask: Tensor) -> Tensor:
        return mask.sum(dim=1)

    def source_length(self, positions: int) -> int:
        return positions


@encoders.register("projected")
class ProjectedEncoder(Encoder):
    r"""Feature vectors on the scale of a text's states, for models that read both.

    .. math:: h_i = \tanh(W\, \mathrm{norm}(x_i) + b)

    Backbones make vectors many times as long as the states of a text, which they would drown out. They also identify
    each training example, so that a model may learn it by heart: dropout counteracts that.

    Shapes:
        source (batch, length, input_dim), mask bool (batch, length) -> states (batch, length, dim), summary (batch,
        dim), their mean.

    Args:
        input_dim: features of the vectors.
        dim: features of the states.
        dropout: applied to the normalised vectors and to the states.
    """

    def __init__(self, *, input_dim: int, dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_share("dropout", dropout)
        check_count("input_dim", input_dim, least=2)  # the norm of a single number is 0
        check_count("dim", dim)
        self.input_dim = input_dim
        self.proj = nn.Linear(input_dim, dim)
        nn.init.xavier_uniform_(self.proj.weight)
        nn.init.zeros_(self.proj.bias)
        self.dropout = dropout
        self.output_dim = self.summary_dim = dim

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        _check_vectors(source, self.input_dim)
        vectors = F.dropout(F.layer_norm(source, source.shape[2:]), self.dropout, self.training)
        states = F.dropout(self.proj(vectors).tanh(), self.dropout, self.training)
        return EncoderOutput(states, mask, mean_of_real(states, mask))

    def positions(self, mask: Tensor) -> Tensor:
        return mask.sum(dim=1)

    def source_length(self, positions: int) -> int:
        return positions


def _check_vectors(source: Tensor, dim: int) -> None:
    if source.dim() != 3 or source.shape[2] != dim:
        raise ValueError(f"source must be (batch, length, {dim}), got {tuple(source.shape)}.")
