"""Files of word vectors, against gensim's reader and writer."""

import numpy as np
import pytest

from saccade.data.vectors import read_vectors, write_vectors

peer = pytest.importorskip("gensim.models", reason="the peer `gensim` is not installed").KeyedVectors

WORDS = ["river", "Straße", "河", "x" * 50, "</s>"]
VALUES = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_what_we_write(tmp_path, binary):
    write_vectors(tmp_path / "v", WORDS, VALUES, binary=binary)
    found = peer.load_word2vec_format(str(tmp_path / "v"), binary=binary)
    assert found.index_to_key == WORDS
    np.testing.assert_array_equal(found.vectors, VALUES)


@pytest.mark.parametrize("kind", ["text", "binary", "glove"])
def test_we_read_what_gensim_writes(tmp_path, kind):
    made = peer(7)
    made.add_vectors(WORDS, VALUES)
    made.save_word2vec_format(str(tmp_path / "v"), binary=kind == "binary", write_header=kind != "glove")
    found = read_vectors(tmp_path / "v")
    assert found.words == WORDS
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-6)
