"""A linear output head."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.decoders.heads.base import OutputHead, heads
from saccade.kernels.cross_entropy import CrossEntropy, linear_cross_entropy
from saccade.kernels.linear import PackedLayers, top_of_linear


@heads.register("linear")
class LinearHead(OutputHead):
    r"""One linear map, or the target embeddings themselves; neither the loss nor `best` keeps all logits in memory.

    .. math:: W x + b

    Shapes:
        features (*, input_dim) -> logits (*, vocab_size).

    Reference:
        Tied weights: Press and Wolf (2017), arXiv:1608.05859.

    Args:
        bias: whether to add the bias b; by default unless the weights are tied.
        tied_to: embedding weights (vocab_size, input_dim) to use as W.
    """

    quantisable = True
    """Whether its linear layers are only called, so that `saccade.models.quantised` may replace them."""

    def __init__(
        self, *, input_dim: int, vocab_size: int, bias: bool | None = None, tied_to: nn.Parameter | None = None
    ) -> None:
        super().__init__()
        self.packed = PackedLayers()
        if tied_to is None:
            self.proj = nn.Linear(input_dim, vocab_size, bias=bias is not False)
            return
        if tuple(tied_to.shape) != (vocab_size, input_dim):
            raise ValueError(f"tied_to must be ({vocab_size}, {input_dim}), got {tuple(tied_to.shape)}.")
        self.proj = nn.Linear(input_dim, vocab_size, bias=False, device="meta")  # draws no random numbers
        self.proj.weight = tied_to
        if bias:
            self.proj.bias = nn.Parameter(tied_to.new_zeros(vocab_size))

    def logits(self, features: Tensor) -> Tensor:
        logits: Tensor = self.proj(features)
        return logits

    def loss(self, features: Tensor, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        if not isinstance(self.proj, nn.Linear):  # quantised: for inference, where the logits are no burden
            return super().loss(features, targets, smoothing=smoothing, first=first)
        weight, bias = self.proj.weight, self.proj.bias
        return linear_cross_entropy(features, weight, bias, targets, smoothing=smoothing, first=first)

    def mean_logit(self, features: Tensor, first: int) -> Tensor:
        if not isinstance(self.proj, nn.Linear):
            return super().mean_logit(features, first)
        bias = None if self.proj.bias is None else self.proj.bias[first:].mean(0, keepdim=True)
        return F.linear(features, self.proj.weight[first:].mean(0, keepdim=True), bias).squeeze(-1)

    def best(self, features: Tensor, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        return top_of_linear(features, self.proj, count, without, layers=self.packed)
