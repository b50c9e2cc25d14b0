"""Skip-gram with negative sampling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.kernels.skip_gram import skip_gram_

CENTRES_AT_ONCE = 20_000
"""Words whose contexts are looked up together."""
LARGEST_BATCH = 256
MOST_UPDATES = 32.0
"""The expected occurrences of a word in one batch, at most: the updates of a batch add up, and more would overshoot."""


class TrainingTexts(NamedTuple):
    """Texts as ids, one after the other."""

    ids: NDArray[np.int64]
    texts: NDArray[np.int64]
    """The number of the text that each id is in."""
    counts: NDArray[np.int64]
    """(vocab,): how often each id is trained on; 0 if it is left out."""


def gather(texts: Iterable[Sequence[int]], vocab: int, *, first: int = 0, min_count: int = 1) -> TrainingTexts:
    """Joins texts, without rare and special ids.

    Args:
        texts: ids from 0 to `vocab` - 1.
        vocab: how many ids there are.
        first: ids below it are special.
        min_count: ids that occur less often are left out, so that their neighbours become neighbours.
    """
    parts = [np.asarray(text, dtype=np.int64) for text in texts]
    ids = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    places = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    counts = np.bincount(ids, minlength=vocab)
    counts[:first] = 0
    counts[counts < min_count] = 0
    kept = counts[ids] > 0
    return TrainingTexts(ids[kept], places[kept], counts)


def keep_probabilities(counts: NDArray[np.int64], threshold: float) -> NDArray[np.float64]:
    r"""The probability of keeping an occurrence of each word, since frequent words teach little.

    .. math:: p = \min\left(1, \left(\sqrt{f / t} + 1\right) t / f\right)

    f is the share of the word in the corpus. A threshold t of 0 keeps everything.
    """
    shares = counts / max(counts.sum(), 1)
    if not threshold:
        return np.ones(len(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = (np.sqrt(shares / threshold) + 1.0) * threshold / shares
    return np.minimum(np.where(shares > 0, kept, 1.0), 1.0)


def noise(counts: NDArray[np.int64]) -> Tensor:
    r"""(vocab,): the probability of drawing each word as a negative.

    .. math:: q_w = \frac{n_w^{3/4}}{\sum_v n_v^{3/4}}
    """
    weights = torch.from_numpy(counts.astype(np.float64)) ** 0.75
    return weights / weights.sum()


class ContextWords(NamedTuple):
    """The words around some centres."""

    centres: Tensor
    """(centres,)."""
    contexts: Tensor
    """(centres, 2 * window): the words at each distance."""
    real: Tensor
    """(centres, 2 * window): whether there is one within the text, and within the window that was drawn."""


def neighbours(
    ids: NDArray[np.int64], texts: NDArray[np.int64], window: int, generator: np.random.Generator
) -> Iterator[ContextWords]:
    """The contexts of every word, for each of which a window from 1 to `window` is drawn; some centres at a time.

    Args:
        ids: the words, one after the other.
        texts: the number of each word's text.
        window: how far a context is away at most.
        generator: of the windows and the order.
    """
    order = generator.permutation(len(ids))
    drawn = generator.integers(1, window + 1, size=len(ids))
    offsets = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    for start in range(0, len(ids), CENTRES_AT_ONCE):
        centres = order[start : start + CENTRES_AT_ONCE]
        places = centres[:, None] + offsets
        near = np.clip(places, 0, len(ids) - 1)
        real = (near == places) & (texts[near] == texts[centres][:, None])
        real &= np.abs(offsets) <= drawn[centres][:, None]
        kept = real.any(1)
        found = ids[centres[kept]], ids[near[kept]], real[kept]
        if kept.any():
            yield ContextWords(*map(torch.from_numpy, found))


@torch.no_grad()
def train_skip_gram(
    corpus: TrainingTexts,
    dim: int,
    *,
    window: int = 5,
    negatives: int = 5,
    epochs: int = 5,
    learning_rate: float = 0.025,
    subsample: float = 1e-3,
    seed: int = 1,
) -> Tensor:
    """(vocab, dim): the vectors v of words that predict their neighbours.

    Stochastic gradient descent with a learning rate that falls to 0; each step changes only the rows of the words that
    occur in it.

    Args:
        corpus: what `gather` returns.
        dim: of the vectors.
        window: how far a context is away at most.
        negatives: how many words are drawn for each context.
        epochs: the number of passes over the corpus.
        learning_rate: of the first step.
        subsample: words that make up more than this share of the corpus are downsampled; 0 keeps all.
        seed: for everything random.

    Reference:
        Mikolov et al. (2013), arXiv:1310.4546, section 2; the initialisation and the form of subsampling are those of
        the authors' program.
    """
    generator, drawing = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    inner = (torch.rand(len(corpus.counts), dim, generator=drawing) - 0.5) / dim
    outer = torch.zeros_like(inner)
    keep, q = keep_probabilities(corpus.counts, subsample), noise(corpus.counts)
    kept = keep * corpus.counts
    most = float(max(negatives * window * q.max(), window * kept.max() / kept.sum()))  # of one word, for each centre
    size = int(min(LARGEST_BATCH, max(1.0, MOST_UPDATES / most)))
    steps = max(1.0, epochs * float(kept.sum()))
    done = 0
    for _ in range(epochs):
        chosen = generator.random(len(corpus.ids)) < keep[corpus.ids]
        for some in neighbours(corpus.ids[chosen], corpus.texts[chosen], window, generator):
            drawn = torch.multinomial(q, len(some.centres) * negatives, replacement=True, generator=drawing)
            passed = (done + torch.arange(0, len(some.centres), size)) / steps
            rates = learning_rate * (1.0 - passed).clamp(min=1e-4)
            skip_gram_(inner, outer, *some, drawn.view(-1, negatives), rates, size)
            done += len(some.centres)
    return inner
