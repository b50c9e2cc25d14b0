"""Embeddings of a model's sources (tokens or feature vectors), and their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from saccade.layers import FeatureEmbedding, TokenEmbedding
from saccade.layers.embedding import PositionTable

Sizes = Mapping[str, int]
"""What a source is: `{"vocab": size}` for tokens, `{"dim": size}` for feature vectors."""


def embed_source(
    *,
    vocab: int | None,
    features: int | None,
    stride: int,
    dim: int,
    scale: bool = False,
    positions: PositionTable | None,
    max_length: int,
    dropout: float,
) -> nn.Module:
    """An embedding of tokens, given `vocab`, or of feature vectors, given `features`; exactly one must be given."""
    if (vocab is None) == (features is None):
        raise ValueError(
            f"Pass either source_vocab, for token ids, or source_dim, for feature vectors; got source_vocab={vocab} "
            f"and source_dim={features}."
        )
    if features is not None:
        return FeatureEmbedding(
            input_dim=features, dim=dim, stride=stride, positions=positions, max_length=max_length, dropout=dropout
        )
    if stride != 1:
        raise ValueError(f"source_stride={stride} joins feature vectors: it needs source_dim, not source_vocab.")
    assert vocab is not None
    return TokenEmbedding(
        vocab_size=vocab, dim=dim, scale=scale, positions=positions, max_length=max_length, dropout=dropout
    )


def embed_pair(vocab: int, vocab_2: int | None, *, dim: int, dropout: float) -> tuple[TokenEmbedding, TokenEmbedding]:
    """Embeddings of two texts, shared if the second has no separate vocabulary."""
    first = TokenEmbedding(vocab_size=vocab, dim=dim, dropout=dropout)
    return first, first if vocab_2 is None else TokenEmbedding(vocab_size=vocab_2, dim=dim, dropout=dropout)


def all_sizes(source_vocab: int | None, source_dim: int | None, other_sources: Sequence[Sizes]) -> list[dict[str, int]]:
    """The sizes of all sources: for each either `vocab` or `dim`."""
    main = {"vocab": source_vocab, "dim": source_dim}
    found = [{name: size for name, size in each.items() if size is not None} for each in (main, *other_sources)]
    for number, sizes in enumerate(found):
        if len(sizes) != 1 or not sizes.keys() <= main.keys():
            name = "source_vocab or source_dim" if not number else f"other_sources[{number - 1}] with vocab or dim"
            raise ValueError(f"Give exactly one size of each source: {name}, got {sizes}.")
    return found
