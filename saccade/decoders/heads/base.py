"""The interface of an output head."""

from __future__ import annotations

from torch import Tensor, nn

from saccade.kernels.cross_entropy import CrossEntropy, cross_entropy
from saccade.kernels.top_log_probs import top_log_probs


class OutputHead(nn.Module):
    """Turns features into logits over the vocabulary.

    A new head implements `logits`, and overrides `loss` and `best` if it can do without the full logits.
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

    def best(self, features: Tensor, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (rows, count) of features (rows, dim), and their classes; no gradient.

        Args:
            count: how many, at most the number of classes.
            without: (n,), classes that are not to be found.
        """
        return top_log_probs(self.logits(features).float(), count, without)

    def forward(self, features: Tensor) -> Tensor:
        return self.logits(features)
