"""Word vectors from a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from saccade.data.readers.files import check_file
from saccade.data.vectors.base import Found, Tune, Vectors, vectors
from saccade.data.vectors.formats import read_vectors


@vectors.register("file")
class VectorFile(Vectors):
    """Vectors from a word2vec (text or binary) or GloVe file, for the words in the vocabulary.

    Only these words are kept, and the file is only read when training starts.

    Args:
        path: the file; it may be gzipped.
        bad_words: "error" stops at a word that is not UTF-8, "skip" leaves it out.
        tune: what training changes: "all" embeddings, only those of "new" words, which are not in the file, or "none".
        rescale: multiply the vectors by one number, so that they are as long as the embeddings that they replace.
    """

    def __init__(
        self,
        *,
        path: str,
        bad_words: Literal["error", "skip"] = "error",
        tune: Tune = "all",
        rescale: bool = True,
    ) -> None:
        super().__init__(tune=tune, rescale=rescale)
        if bad_words not in ("error", "skip"):
            raise ValueError(f"bad_words must be 'error' or 'skip', got {bad_words!r:.60}.")
        self.path = path
        self.bad_words = bad_words

    def check(self) -> None:
        check_file(self.path)

    def find(self, words: Sequence[str], texts: Iterable[Sequence[int]], dim: int) -> Found:
        found = read_vectors(self.path, {word for word in words if word}, dim=dim, bad_words=self.bad_words)
        places = {word: place for place, word in enumerate(found.words)}
        rows = np.array([places.get(word, -1) for word in words], dtype=np.int64)
        values = np.zeros((len(words), dim), dtype=np.float32)
        values[rows >= 0] = found.values[rows[rows >= 0]]
        return Found(rows >= 0, values)
