"""Word vectors: files of word2vec and GloVe, and word2vec itself."""

from saccade.data.vectors.base import Found, Vectors, vectors
from saccade.data.vectors.file import VectorFile
from saccade.data.vectors.formats import WordVectors, read_vectors, write_vectors
from saccade.data.vectors.word2vec import Word2Vec

__all__ = ["Found", "VectorFile", "Vectors", "Word2Vec", "WordVectors", "read_vectors", "vectors", "write_vectors"]
