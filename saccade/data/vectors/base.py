"""Word vectors: the initial values of an embedding table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.registry import Registry, nearest

Tune = Literal["all", "new", "none"]


class Found(NamedTuple):
    """The vectors of a vocabulary."""

    known: NDArray[np.bool_]
    """(vocab,): which ids have a vector; the others keep the model's initial values."""
    values: NDArray[np.float32]
    """(vocab, dim)."""


class Vectors:
    """The initial embeddings of a field. A new kind implements `find`.

    Args:
        tune: what training changes: "all" embeddings, only those of "new" words, which have no vector, or "none".
        rescale: multiply the vectors by one number, so that they are as long as the embeddings that they replace.
    """

    def __init__(self, *, tune: Tune = "all", rescale: bool = True) -> None:
        if tune not in ("all", "new", "none"):
            raise ValueError(f"tune={tune!r:.60} is unknown.{nearest(str(tune), ('all', 'new', 'none'))}")
        self.tune = tune
        self.rescale = rescale

    def check(self) -> None:
        """Raises before any work if the vectors cannot be read, for example because a file is missing."""

    def find(self, words: Sequence[str], texts: Iterable[Sequence[int]], dim: int) -> Found:
        """The vectors of a vocabulary.

        Args:
            words: what each id stands for; special ids stand for nothing, "".
            texts: the training texts as ids, read once.
            dim: how long the vectors must be.
        """
        raise NotImplementedError


vectors: Registry[Vectors] = Registry("vectors", base=Vectors, home="saccade.data.vectors", plural="vectors")
