"""Hierarchical attention networks."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.encoders import PooledEncoder, RecurrentEncoder
from saccade.encoders.pooled import PoolingName
from saccade.kernels.modes import exporting
from saccade.layers import TokenEmbedding
from saccade.layers.packing import length_blocks
from saccade.layers.recurrent import CellName
from saccade.models.base import models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("han")
class HAN(nn.Module):
    r"""Labels documents: words are pooled into sentences, and sentences into the document.

    .. math:: s_i = \sum_t \alpha_{it} h_{it}, \quad
        \alpha_{it} = \mathrm{softmax}_t(u_w^\top \tanh(W_w h_{it} + b_w))

    .. math:: v = \sum_i \alpha_i h_i, \quad \alpha_i = \mathrm{softmax}_i(u_s^\top \tanh(W_s h_i + b_s)), \quad
        z = W_c v + b_c

    h_it are the states of a bidirectional recurrent network over the words of sentence i, and h_i those of another one
    over the vectors s_i. Sentences without words are skipped. Only real sentences are computed, grouped by length,
    so that there is little padding.

    Shapes:
        tokens (batch, sentences, words), mask bool of the same shape, real words first -> logits (batch, classes).

    Reference:
        Yang et al. (2016), "Hierarchical attention networks for document classification", NAACL, section 2.2: word
        vectors of size 200, a GRU with 50 units per direction, and u_w and u_s of size 100.

    Args:
        hidden_dim: units per direction of both networks.
        context_dim: the size of the score's hidden layer, and of u_w and u_s.
        cell: "gru", "paper_gru" (resets before the product) or "lstm".
        word_pooling, sentence_pooling: "attention", "average" or "max".
        score, selection: used at both levels, each a short name or an instance; the paper uses query_free.
        sentence_score, sentence_selection: the same for sentences, if they should differ.
        dropout: applied to embeddings, sentence vectors and document vectors.
        max_length: the maximum number of words per sentence and of sentences per document, for scores that need it.
    """

    def __init__(
        self,
        *,
        vocab: int,
        classes: int,
        embedding_dim: int = 200,
        hidden_dim: int = 50,
        context_dim: int = 100,
        cell: CellName = "gru",
        word_pooling: PoolingName = "attention",
        sentence_pooling: PoolingName = "attention",
        score: str | Score | partial[Score] = "query_free",
        selection: str | Selection | partial[Selection] = "softmax",
        sentence_score: str | Score | partial[Score] | None = None,
        sentence_selection: str | Selection | partial[Selection] | None = None,
        dropout: float = 0.2,
        max_length: int = 2048,
    ) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size=vocab, dim=embedding_dim, dropout=dropout)
        shared = {"hidden_dim": context_dim, "max_length": max_length}
        self.words = PooledEncoder(
            encoder=_network(embedding_dim, hidden_dim, cell),
            pooling=word_pooling,
            score=score,
            selection=selection,
            **shared,
        )
        self.sentences = PooledEncoder(
            encoder=_network(self.words.output_dim, hidden_dim, cell),
            pooling=sentence_pooling,
            score=score if sentence_score is None else sentence_score,
            selection=selection if sentence_selection is None else sentence_selection,
            **shared,
        )
        self.output_proj = nn.Linear(self.sentences.output_dim, classes)
        self.dropout = dropout

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        if tokens.dim() != 3:
            raise ValueError(
                f"HAN reads documents, (batch, sentences, words), got {tuple(tokens.shape)}: use the field document."
            )
        lengths = mask.sum(-1)
        counts = (lengths > 0).sum(1)
        if exporting():
            document = self._exported(tokens, mask, lengths, counts)
            return self.output_proj(document)  # type: ignore[no-any-return]
        vectors = F.dropout(self.encode_sentences(tokens.flatten(0, 1), lengths.flatten()), self.dropout, self.training)
        real = torch.arange(max(1, int(counts.max())), device=mask.device) < counts.unsqueeze(1)
        padded = vectors.new_zeros(*real.shape, vectors.shape[1]).masked_scatter(real.unsqueeze(-1), vectors)
        document = self.sentences(padded, real)
        logits: Tensor = self.output_proj(F.dropout(document, self.dropout, self.training))
        return logits

    def _exported(self, tokens: Tensor, mask: Tensor, lengths: Tensor, counts: Tensor) -> Tensor:
        """The vectors of documents, with all sentences in one block: an exported graph cannot group them by length."""
        batch, most, words = tokens.shape
        vectors = self.words(self.embedding(tokens.reshape(-1, words)), mask.reshape(-1, words))
        places = torch.arange(most, device=mask.device)
        order = torch.where(lengths > 0, places, places + most).argsort(1)  # those with words first
        index = order.unsqueeze(-1).expand(-1, -1, vectors.shape[1])
        document: Tensor = self.sentences(
            vectors.reshape(batch, most, vectors.shape[1]).gather(1, index), places < counts.unsqueeze(1)
        )
        return document

    def encode_sentences(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The vectors of all non-empty sentences: tokens (all, words), lengths (all,) -> (real, dim)."""
        blocks = length_blocks(lengths)
        if not blocks:
            return self.embedding.weight.new_zeros(0, self.words.output_dim)
        masks = [torch.arange(int(lengths[rows[-1]]), device=rows.device) < lengths[rows, None] for rows in blocks]
        given = [tokens[rows, : mask.shape[1]] for rows, mask in zip(blocks, masks, strict=True)]
        # A single lookup: each further one would have a gradient as large as the whole table.
        embedded = self.embedding(torch.cat([each.flatten() for each in given])).split([m.numel() for m in masks])
        vectors = [self.words(part.unflatten(0, mask.shape), mask) for part, mask in zip(embedded, masks, strict=True)]
        return torch.cat(vectors)[torch.cat(blocks).argsort()]


def _network(input_dim: int, hidden_dim: int, cell: CellName) -> RecurrentEncoder:
    return RecurrentEncoder(
        embedding=nn.Identity(), input_dim=input_dim, hidden_dim=hidden_dim, cell=cell, bidirectional=True
    )
