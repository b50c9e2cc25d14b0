"""The command that learns word vectors: embed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.commands.columns import parse_columns, parse_yes_no
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.pictures import check_place

if TYPE_CHECKING:
    from saccade.data.vectors import WordVectors

SHOWN = 8
"""Neighbours of a word that are printed."""


def embed(
    data: str,
    *,
    output: str,
    columns: str | None = None,
    header: str | None = None,
    lowercase: bool = False,
    dim: int = 100,
    window: int = 5,
    negatives: int = 5,
    epochs: int = 5,
    learning_rate: float = 0.025,
    subsample: float = 1e-3,
    min_count: int = 5,
    seed: int = 1,
    neighbours: str | None = None,
) -> None:
    """Learn word vectors from texts (word2vec: skip-gram with negative sampling).

        saccade embed corpus.txt --output vectors.txt --neighbours river,king
        saccade embed reviews.csv --data.text body --lowercase --output vectors.bin
        saccade train my.yaml --task.inputs.text.vectors '{class: file, path: vectors.txt}' --output runs/my-model

    Texts are split into words and punctuation marks. The file has word2vec's format: text, or binary if its name ends
    in .bin. To learn vectors from the training texts of a run, you need no file: see `saccade show word2vec`.

    Args:
        data: corpus.txt, with a text in each line, or a table as .tsv, .csv, .jsonl or .parquet.
        output: the file to write.
        columns: the column of a table to read, as text=body.
        header: whether TSV and CSV files begin with a header, yes or no.
        lowercase: fold upper case to lower case.
        dim: the size of the vectors.
        window: the maximum distance between two words that predict each other.
        negatives: random words to contrast with each neighbour.
        epochs: the number of passes over the texts.
        learning_rate: at the beginning; it falls to 0.
        subsample: words that make up more than this share of the texts are downsampled; 0 keeps all.
        min_count: rarer words get no vector.
        seed: for everything random.
        neighbours: print the nearest neighbours of these words, as river,king.
    """
    from saccade.checks import check_count

    check_count("--dim", dim)
    check_place(output, "--output")
    with leaving_at_once():
        from saccade.data.corpus import Corpus
        from saccade.data.spool import Spool
        from saccade.data.tokenisers import WordTokeniser
        from saccade.data.vectors import Word2Vec, WordVectors, write_vectors
        from saccade.fields import Text

    learned = Word2Vec(
        window=window,
        negatives=negatives,
        epochs=epochs,
        learning_rate=learning_rate,
        subsample=subsample,
        min_count=min_count,
        seed=seed,
    )
    field = Text(tokeniser=WordTokeniser(min_frequency=min_count, lowercase=lowercase))
    started = time.monotonic()
    corpus = Corpus(columns=parse_columns(columns), header=parse_yes_no(header, "--header"))
    with Spool(corpus.read(data, {"text": field}), Path(output).parent) as texts:
        field.fit(example["text"] for example in texts)
        found = learned.find(field.vocabulary(), (field.encode(example["text"]) for example in texts), dim)
    rows = {word: place for place, word in reversed(list(enumerate(field.vocabulary()))) if found.known[place]}
    places = sorted(rows.values())  # the most frequent first; of a sign, with or without spaces around it, the first
    vectors = WordVectors([field.vocabulary()[place] for place in places], found.values[places])
    write_vectors(output, vectors.words, vectors.values, binary=Path(output).suffix == ".bin")
    print(f"{output}: {len(vectors.words):,} words in {time.monotonic() - started:.1f} s")
    for word in (neighbours or "").split(",") if neighbours else []:
        print(f"{word.strip()}: {', '.join(nearest_words(vectors, word.strip())) or 'has no vector'}")


def nearest_words(vectors: WordVectors, word: str, count: int = SHOWN) -> list[str]:
    """The words whose vectors have the most similar direction; none if the word has no vector."""
    import numpy as np

    if word not in vectors.words:
        return []
    lengths = np.linalg.norm(vectors.values, axis=1, keepdims=True)
    directions = vectors.values / np.maximum(lengths, 1e-12)
    similar = directions @ directions[vectors.words.index(word)]
    return [vectors.words[place] for place in np.argsort(-similar) if vectors.words[place] != word][:count]
