"""Training a hierarchical attention network on film reviews.

SACCADE_DATA names the data folder, which contains `review_polarity/review_polarity.tar.gz`. Both sides have the paper's
sizes and take the same steps of Adam on the same batches of 16 reviews, drawn at random. The padded peer is what most
people write first: all sentences of a batch, padded to its longest document and longest sentence, go through `nn.GRU`.
The packed one leaves the padding to PyTorch's packed sequences.
"""

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.harness import Timing
from reproductions.han.run import read_reviews
from saccade.fields import Document
from saccade.models import HAN

ROOT = Path(__file__).resolve().parent.parent
BATCH, BATCHES, VOCAB = 16, 4, 20_000


def cases() -> list[Timing]:
    what = "training HAN on review_polarity"
    return [
        Timing(what, "nn.GRU over padded sentences", partial(_sides, packed=False), must=2.0),
        Timing(what, "nn.GRU over packed sentences", partial(_sides, packed=True)),
    ]


class Peer(nn.Module):
    """The same network with PyTorch's layers, over all sentences of a batch at once."""

    def __init__(self, *, packed: bool) -> None:
        super().__init__()
        self.packed = packed
        self.embedding = nn.Embedding(VOCAB, 200, padding_idx=0)
        self.word_gru = nn.GRU(200, 50, batch_first=True, bidirectional=True)
        self.sentence_gru = nn.GRU(100, 50, batch_first=True, bidirectional=True)
        self.word_attention = nn.Sequential(nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 1, bias=False))
        self.sentence_attention = nn.Sequential(nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 1, bias=False))
        self.output = nn.Linear(100, 2)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        documents, sentences, words = tokens.shape
        embedded = F.dropout(self.embedding(tokens.view(-1, words)), 0.2, self.training)
        vectors = self.pool(self.word_gru, self.word_attention, embedded, mask.view(-1, words))
        vectors = F.dropout(vectors, 0.2, self.training)
        real = mask.any(-1)
        document = self.pool(self.sentence_gru, self.sentence_attention, vectors.view(documents, sentences, -1), real)
        logits: Tensor = self.output(F.dropout(document, 0.2, self.training))
        return logits

    def pool(self, gru: nn.GRU, attention: nn.Module, inputs: Tensor, mask: Tensor) -> Tensor:
        if self.packed:
            lengths = mask.sum(1)
            rows = lengths.nonzero().squeeze(1)
            run = pack_padded_sequence(inputs[rows], lengths[rows], batch_first=True, enforce_sorted=False)
            found = pad_packed_sequence(gru(run)[0], batch_first=True, total_length=mask.shape[1])[0]
            states = found.new_zeros(*mask.shape, found.shape[-1]).index_copy(0, rows, found)
        else:
            states = gru(inputs)[0]
        scores = attention(states).squeeze(-1).masked_fill(~mask, -1e9)
        pooled: Tensor = (scores.softmax(-1).unsqueeze(1) @ states).squeeze(1)
        return pooled * mask.any(-1, keepdim=True)


def _sides(*, packed: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    given = list(_batches())
    torch.manual_seed(1)
    return _steps(HAN(vocab=VOCAB, classes=2), given), _steps(Peer(packed=packed), given)


def _steps(model: nn.Module, given: list[tuple[Tensor, Tensor, Tensor]]) -> Callable[[], None]:
    """A function that trains for one step, on the next batch each time."""
    optimiser = torch.optim.Adam(model.train().parameters())
    coming = cycle(given)

    def run() -> None:
        tokens, mask, labels = next(coming)
        optimiser.zero_grad()
        F.cross_entropy(model(tokens, mask), labels).backward()
        optimiser.step()

    return run


def _batches() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    folder = Path(os.environ.get("SACCADE_DATA", ROOT.parent / "shared" / "data"))
    archive = folder / "review_polarity" / "review_polarity.tar.gz"
    if not archive.is_file():
        raise FileNotFoundError(f"no file {archive}: set SACCADE_DATA to the folder that contains review_polarity")
    reviews = random.Random(1).sample(read_reviews(archive), BATCH * BATCHES)
    field = Document(tokeniser="pretokenised", sentences="given", max_words=10_000)
    field.fit([review.sentences for review in reviews])
    for start in range(0, len(reviews), BATCH):
        chosen = reviews[start : start + BATCH]
        padded = field.pad([field.encode(review.sentences) for review in chosen])
        yield padded["values"], padded["mask"], torch.tensor([int(review.label == "pos") for review in chosen])
