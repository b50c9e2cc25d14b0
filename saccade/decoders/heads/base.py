"""The interface of an output head."""

from __future__ import annotations

from torch import Tensor, nn

from saccade.kernels.cross_entropy import CrossEntropy, cross_entropy


class OutputHead(nn.Module):
    """Turns features into logits over the vocabulary.

    A new head implements `logits`, and overrides `loss` if it can compute the loss without the full logits.
    """

    def logits(self, features: Tensor) -> Tensor:
        """Logits (*, vocab) of features (*, dim)."""
        raise NotImplementedError

    def loss(self, features: Tensor, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        """Sums the cross-entropy over rows.

        Args:
            features: (rows, dim).
            targets: (rows,), the class of each row.
            smoothing: the share of the target probability that is spread evenly over the classes from `first` on.
            first: the first class that can be a target.
        """
        return cross_entropy(self.logits(features), targets, smoothing=smoothing, first=first)

    def forward(self, features: Tensor) -> Tensor:
        return self.logits(features)
