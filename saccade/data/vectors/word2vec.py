"""Word vectors learned from the training texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from saccade.checks import check_count
from saccade.data.vectors.base import Found, Tune, Vectors, vectors
from saccade.data.vectors.skip_gram import gather, train_skip_gram


@vectors.register("word2vec")
class Word2Vec(Vectors):
    r"""Vectors of words that predict the words around them (skip-gram with negative sampling).

    .. math:: -\log \sigma(v_w^\top u_c) - \sum_{i=1}^{k} \log \sigma(-v_w^\top u_{n_i}), \quad n_i \sim n^{3/4}

    They are learned from the training texts when training starts, in as many dimensions as the model's embeddings
    have. Words that are too rare keep their random initial values.

    Reference:
        Mikolov et al. (2013), arXiv:1310.4546, equation 4: w is the word, c a word near it, u its output vector.

    Args:
        window: the maximum distance between c and w; it is drawn for each w.
        negatives: k.
        epochs: the number of passes over the texts.
        learning_rate: at the beginning; it falls to 0.
        subsample: words that make up more than this share of the texts are downsampled; 0 keeps all.
        min_count: words that occur less often have no vector.
        seed: for everything random.
        tune: what training changes: "all" embeddings, only those of "new" words, which are too rare, or "none".
        rescale: multiply the vectors by one number, so that they are as long as the embeddings that they replace.
    """

    def __init__(
        self,
        *,
        window: int = 5,
        negatives: int = 5,
        epochs: int = 5,
        learning_rate: float = 0.025,
        subsample: float = 1e-3,
        min_count: int = 2,
        seed: int = 1,
        tune: Tune = "all",
        rescale: bool = True,
    ) -> None:
        super().__init__(tune=tune, rescale=rescale)
        counts = {"window": window, "negatives": negatives, "epochs": epochs, "min_count": min_count}
        for name, count in counts.items():
            check_count(name, count)
        if not learning_rate > 0.0:
            raise ValueError(f"learning_rate must be above 0, got {learning_rate}.")
        if not 0.0 <= subsample < 1.0:
            raise ValueError(f"subsample must be from 0 to less than 1, got {subsample}.")
        self.window, self.negatives, self.epochs = window, negatives, epochs
        self.learning_rate, self.subsample, self.min_count, self.seed = learning_rate, subsample, min_count, seed

    def find(self, words: Sequence[str], texts: Iterable[Sequence[int]], dim: int) -> Found:
        special = next((place for place, word in enumerate(words) if word), len(words))
        corpus = gather(texts, len(words), first=special, min_count=self.min_count)
        if (corpus.counts > 0).sum() < 2:
            raise ValueError(f"word2vec needs two words that occur {self.min_count} times or more.")
        values = train_skip_gram(
            corpus,
            dim,
            window=self.window,
            negatives=self.negatives,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            subsample=self.subsample,
            seed=self.seed,
        )
        return Found(np.asarray(corpus.counts > 0), values.numpy())
