"""Word-by-word attention between two texts."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention, check_one_by_one
from saccade.distributions import Categorical
from saccade.encoders.pooled import max_of_real
from saccade.kernels.modes import exporting
from saccade.kernels.steps import outputs_of_steps
from saccade.layers import RecurrentLayer
from saccade.layers.choices import make_score, make_selection
from saccade.layers.recurrent import last_real
from saccade.memory import Memory
from saccade.models.base import models
from saccade.models.comparing import compared, tie
from saccade.models.sources import embed_pair
from saccade.reading import Reading, State
from saccade.scores import Score
from saccade.selections import Selection


@models.register("word_by_word")
class WordByWord(nn.Module):
    r"""Reads one text, then another in which every word attends to the words of the first.

    .. math:: y, c = \mathrm{LSTM}(a), \quad h = \mathrm{LSTM}(b; c_0 = c_L), \quad
        r_t = \mathrm{attention}([h_t; r_{t-1}], y) + \tanh(W_t r_{t-1}), \quad
        z = W \tanh(W_p r_N + W_x h_N) + b

    Each text has its own LSTM; the second starts from the memory cell of the first. The weights show
    which words of the first text each word of the second was compared with.

    Shapes:
        tokens_a (batch, length_a), mask_a bool (batch, length_a), and the same of the second text
        -> logits (batch, classes).

    Reference:
        Rocktäschel et al. (2016), arXiv:1509.06664, section 2.4; there a is the premise, b the hypothesis, and the
        additive score is :math:`w^\top \tanh(W_y Y + W_h h_t + W_r r_{t-1})`. Comparing: Mou et al. (2016),
        arXiv:1512.08422; with maxima, Conneau et al. (2017), arXiv:1705.02364.

    Args:
        vocab, vocab_2: of the two texts; they share the embeddings if vocab_2 is None.
        score, selection: the score and selection of the attention, each a short name or an instance.
        compare: for data of a few thousand pairs, which do not teach two networks the same words: both have the same
            weights, and [a; b; |a - b|; a * b] of the largest value of each feature of both texts is classified, too.
        dropout: applied to embeddings and to the vector that is classified.
    """

    def __init__(
        self,
        *,
        vocab: int,
        classes: int,
        vocab_2: int | None = None,
        embedding_dim: int = 128,
        hidden_dim: int = 128,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        compare: bool = False,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.embedding_a, self.embedding_b = embed_pair(vocab, vocab_2, dim=embedding_dim, dropout=dropout)
        self.layer_a = RecurrentLayer(input_dim=embedding_dim, hidden_dim=hidden_dim, cell="lstm")
        self.layer_b = RecurrentLayer(input_dim=embedding_dim, hidden_dim=hidden_dim, cell="lstm")
        sizes = {"query_dim": 2 * hidden_dim, "key_dim": hidden_dim, "hidden_dim": hidden_dim}
        self.attention = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
        check_one_by_one(self.attention)
        self.carry_proj = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.final_proj = nn.Linear((6 if compare else 2) * hidden_dim, hidden_dim, bias=False)
        self.output_proj = nn.Linear(hidden_dim, classes)
        self.dropout = dropout
        self.compare = compare
        if compare:
            tie(self.layer_b, self.layer_a)

    def forward(self, tokens_a: Tensor, mask_a: Tensor, tokens_b: Tensor, mask_b: Tensor) -> Tensor:
        states_a, (_, cell) = self.layer_a(self.embedding_a(tokens_a), mask_a)
        states_b = self.layer_b.run(self.embedding_b(tokens_b), (torch.zeros_like(cell), cell))[0]
        memory = self.attention.prepare(states_a, mask=mask_a.unsqueeze(1))
        reads = (self._exported if exporting() else self._compare)(states_b, memory)
        ends = F.pad(mask_b, (1, 0), value=True)  # a text without words has read nothing
        last = last_real((F.pad(reads, (0, 0, 1, 0)), F.pad(states_b, (0, 0, 1, 0))), ends)
        if self.compare:
            last += (compared(max_of_real(states_a, mask_a), max_of_real(states_b, mask_b)),)
        joined = self.final_proj(torch.cat(last, dim=-1)).tanh()
        logits: Tensor = self.output_proj(F.dropout(joined, self.dropout, self.training))
        return logits

    def _compare(self, words: Tensor, memory: Memory) -> Tensor:
        """r_t for each word, (batch, length_b, hidden_dim)."""
        state, reads = State(), [torch.zeros_like(words[:, 0])] if words.shape[1] else []
        for word in words.unbind(1):
            reading, read = self._step(word, reads[-1], memory, state)
            state = reading.state
            reads.append(read)
        return torch.stack(reads[1:], 1) if reads else words

    def _step(self, word: Tensor, before: Tensor, memory: Memory, state: State) -> tuple[Reading, Tensor]:
        query = torch.cat([word, before], dim=-1).unsqueeze(1)
        reading = self.attention.read(query, memory, state=state)
        return reading, reading.context.squeeze(1) + self.carry_proj(before).tanh()

    def _exported(self, words: Tensor, memory: Memory) -> Tensor:
        """The same as one loop of an exported graph, for attention without a state."""

        parts = memory.prepared, memory.values, memory.mask

        def step(row: Tensor, before: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            reading, read = self._step(row, before[0], Memory(*parts, self.attention), State())
            return (read,), (read, reading.weights.squeeze(1))

        start = (words.new_zeros(words.shape[0], words.shape[2]),)
        reads, weights = (each.transpose(0, 1) for each in outputs_of_steps(step, start, words.transpose(0, 1)))
        self.attention.note(Reading(reads, Categorical(weights)))
        return reads
