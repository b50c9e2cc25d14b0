"""LSTMNs for two texts."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.encoders import LSTMNEncoder
from saccade.encoders.base import mean_of_real
from saccade.encoders.pooled import max_of_real
from saccade.layers import LSTMNLayer
from saccade.layers.choices import make_score, make_selection
from saccade.models.base import models
from saccade.models.comparing import compared, tie
from saccade.models.sources import embed_pair
from saccade.scores import Score
from saccade.selections import Selection

CLOSED = -3.0
"""The bias of a gate that lets 5 % through."""


@models.register("lstmn_pair")
class LSTMNPair(nn.Module):
    r"""Two long short-term memory-networks; the second attends to the first as well as to itself.

    .. math:: g = \mathrm{LSTMN}(a), \quad h = \mathrm{LSTMN}(b; g), \quad
        z = W_2 \operatorname{relu}(W_1 [\bar g; \bar h] + b_1) + b_2

    With deep fusion the attention to the first text is part of the second one's cell: see `LSTMNLayer`. With shallow
    fusion it follows the second network, :math:`h_t + W \mathrm{attention}(h_t, g)`. Bars are means over all words.

    Shapes:
        tokens_a (batch, length_a), mask_a bool (batch, length_a), and the same of the second text
        -> logits (batch, classes).

    Reference:
        Cheng et al. (2016), arXiv:1601.06733, sections 3.2 and 4.3; there a is the premise and b the hypothesis.
        Comparing: Mou et al. (2016), arXiv:1512.08422; with maxima, Conneau et al. (2017), arXiv:1705.02364.

    Args:
        vocab, vocab_2: of the two texts; they share the embeddings if vocab_2 is None.
        num_layers: of each network; each layer of the second reads the same layer of the first.
        fusion: "deep" or "shallow".
        compare: for data of a few thousand pairs, which do not teach two networks the same words: both have the same
            weights, and [a; b; |a - b|; a * b] of the largest value of each feature is classified instead of both
            means. Fusion begins as good as closed.
        score, selection: the score and selection of all attentions, each a short name or an instance.
        window: how many of its latest states a step may read; all by default.
        dropout: applied to embeddings, between layers, and in the classifier.
    """

    def __init__(
        self,
        *,
        vocab: int,
        classes: int,
        vocab_2: int | None = None,
        embedding_dim: int = 128,
        hidden_dim: int = 128,
        num_layers: int = 1,
        fusion: Literal["deep", "shallow"] = "deep",
        compare: bool = False,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        window: int | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        if fusion not in ("deep", "shallow"):
            raise ValueError(f"fusion must be 'deep' or 'shallow', got {fusion!r}.")
        embedding_a, embedding_b = embed_pair(vocab, vocab_2, dim=embedding_dim, dropout=dropout)
        network = partial(
            LSTMNEncoder,
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            score=score,
            selection=selection,
            window=window,
            dropout=dropout,
        )
        self.encoder_a = network(embedding=embedding_a)
        self.encoder_b = network(embedding=embedding_b, fusion=fusion == "deep")
        self.attention: Attention | None = None
        if fusion == "shallow":
            sizes = {"query_dim": hidden_dim, "key_dim": hidden_dim, "dim": hidden_dim, "hidden_dim": hidden_dim}
            self.attention = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
            self.context_proj = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.hidden_proj = nn.Linear((4 if compare else 2) * hidden_dim, hidden_dim)
        self.output_proj = nn.Linear(hidden_dim, classes)
        self.dropout = dropout
        self.compare = compare
        if compare:
            tie(self.encoder_b.layers, self.encoder_a.layers)
            self._close()

    def _close(self) -> None:
        """Closes the fusion gate initially, so that equal texts have equal vectors."""
        if self.attention is not None:
            nn.init.zeros_(self.context_proj.weight)
        for layer in self.encoder_b.layers:
            if isinstance(layer, LSTMNLayer) and layer.source_attention is not None:
                nn.init.constant_(layer.source_input.bias, CLOSED)

    def forward(self, tokens_a: Tensor, mask_a: Tensor, tokens_b: Tensor, mask_b: Tensor) -> Tensor:
        first = self.encoder_a.tapes(tokens_a, mask_a)
        if self.attention is None:
            states = self.encoder_b.tapes(tokens_b, mask_b, first)[-1].hidden
        else:
            states = self.encoder_b.tapes(tokens_b, mask_b)[-1].hidden
            context = self.attention(states, first[-1].hidden, mask=mask_a.unsqueeze(1)).context
            states = states + self.context_proj(context)
        pool = max_of_real if self.compare else mean_of_real
        pair = pool(first[-1].hidden, mask_a), pool(states, mask_b)
        pooled = compared(*pair) if self.compare else torch.cat(pair, dim=-1)
        hidden = self.hidden_proj(F.dropout(pooled, self.dropout, self.training)).relu()
        logits: Tensor = self.output_proj(F.dropout(hidden, self.dropout, self.training))
        return logits
