"""Learning word vectors from the Penn Treebank: one pass of skip-gram with negative sampling.

SACCADE_DATA names the data folder, which contains `ptb/ptb.zip`. Both sides start from lists of words and a counted
vocabulary, with the same settings and one thread. Ours draws negatives once for all contexts of a centre, and counts
them once per context; gensim draws new ones for each pair.
"""

import os
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import Timing
from saccade.data.vectors.skip_gram import gather, train_skip_gram

ROOT = Path(__file__).resolve().parent.parent
DIM, WINDOW, NEGATIVES, SUBSAMPLE, MIN_COUNT = 100, 5, 5, 1e-3, 5


def cases() -> list[Timing]:
    return [Timing("word2vec on the Penn Treebank, one thread", "gensim, one worker", _sides, must=1.0)]


def _sides() -> tuple[Callable[[], object], Callable[[], object]]:
    from gensim.models import Word2Vec  # type: ignore[import-untyped]

    texts = _texts()
    counts = Counter(word for text in texts for word in text)
    ids = {word: place for place, (word, count) in enumerate(counts.most_common()) if count >= MIN_COUNT}
    peer = Word2Vec(
        vector_size=DIM, window=WINDOW, negative=NEGATIVES, sample=SUBSAMPLE, min_count=MIN_COUNT, sg=1, workers=1
    )
    peer.build_vocab(texts)
    assert len(peer.wv) == len(ids)

    def ours() -> object:
        corpus = gather(([ids[word] for word in text if word in ids] for text in texts), len(ids))
        return train_skip_gram(corpus, DIM, window=WINDOW, negatives=NEGATIVES, epochs=1, subsample=SUBSAMPLE, seed=1)

    def theirs() -> object:
        return peer.train(texts, total_examples=len(texts), epochs=1)

    return ours, theirs


def _texts() -> list[list[str]]:
    folder = Path(os.environ.get("SACCADE_DATA", ROOT.parent / "shared" / "data"))
    archive = folder / "ptb" / "ptb.zip"
    if not archive.is_file():
        raise FileNotFoundError(f"no file {archive}: set SACCADE_DATA to the folder that contains ptb")
    with zipfile.ZipFile(archive) as packed:
        lines = packed.read("ptb.train.txt").decode().splitlines()
    return [words for words in (line.split() for line in lines) if words]
