"""The interface of an output head."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade.encoders.base import SourceWords
from saccade.kernels.cross_entropy import CrossEntropy, cross_entropy
from saccade.kernels.top_log_probs import top_log_probs
from saccade.registry import Registry


class Cues(NamedTuple):
    """What a head may read from steps besides their features.

    Args:
        state: (batch, steps, state_dim), that of the decoder.
        inputs: (batch, steps, embedding_dim), the embedding of the previous token.
        context: (batch, steps, context_dim), what was read of the source.
        weights: (batch, steps, keys), how the source was read.
        keys: (batch, keys, context_dim), what was read: the encoder's states.
        source: the words of the source.
    """

    state: Tensor
    inputs: Tensor
    context: Tensor
    weights: Tensor
    keys: Tensor
    source: SourceWords


class Origins(NamedTuple):
    """Where tokens came from.

    Args:
        ways: the names of the ways to produce a word, "generate" first.
        shares: (*, ways), how much of the token's probability each way contributed; they sum to 1.
        places: (*, ways), the position that contributed most to each way; -1 for none.
    """

    ways: tuple[str, ...]
    shares: Tensor
    places: Tensor


class Entries(NamedTuple):
    """The entries of one way: positions of the source, earlier words or lines of a lexicon.

    Args:
        scores: (*, entries), log-weights, -inf for a missing entry.
        words: (*, entries), the word of each entry, an id of the extended vocabulary.
        of_place: how many entries in a row belong to one position.
    """

    scores: Tensor
    words: Tensor
    of_place: int = 1


class OutputHead(nn.Module):
    """Turns features into logits over the vocabulary.

    A new head implements `logits`, and overrides `loss` and `best` if it can do without the full logits. A head that
    reads more than features sets `cued`, and `collect` returns what the other methods then get for features: anything
    that can be indexed by rows.
    """

    cued: bool = False
    """Whether `collect` reads its cues; decoders that would have to compute them can leave them out otherwise."""

    copies: bool = False
    """Whether it can produce words that only the source has: ids from the size of the vocabulary on."""

    def collect(self, features: Tensor, cues: Cues | None = None) -> Any:
        """What the head needs from each step: by default only features (batch, steps, dim)."""
        return features

    def known(self, tokens: Tensor) -> Tensor:
        """The tokens as an embedding has them: words outside the vocabulary become the unknown word."""
        return tokens

    def logits(self, features: Any) -> Tensor:
        """Logits (*, vocab) of features (*, dim)."""
        raise NotImplementedError

    def loss(self, features: Any, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        """Sums the cross-entropy over rows.

        Args:
            features: (rows, dim).
            targets: (rows,), the class of each row.
            smoothing: the share of the target probability that is spread evenly over the classes from `first` on.
            first: the first class that can be a target.
        """
        return cross_entropy(self.logits(features), targets, smoothing=smoothing, first=first)

    def mean_logit(self, features: Tensor, first: int) -> Tensor:
        """The mean (rows,) of the logits from class `first` on."""
        return self.logits(features)[..., first:].mean(-1)

    def best(self, features: Any, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """The largest log-probabilities (rows, count) of features (rows, dim), and their classes; no gradient.

        Args:
            count: how many, at most the number of classes.
            without: (n,), classes that are not to be found.
        """
        return top_log_probs(self.logits(features).float(), count, without)

    def shares(self, features: Any) -> dict[str, Entries]:
        """What each way to say a word other than generating it adds to the words' probabilities, as logarithms."""
        return {}

    def origins(self, features: Any, tokens: Tensor) -> Origins | None:
        """Where tokens (*,) came from; None for a head that only generates words."""
        return None

    def forward(self, features: Any) -> Tensor:
        return self.logits(features)


heads: Registry[OutputHead] = Registry("head", base=OutputHead, home="saccade.decoders.heads")
