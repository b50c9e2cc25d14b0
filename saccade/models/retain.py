"""RETAIN: two levels of attention over visits in reverse time, with additive contributions of codes."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from saccade.attention import Attention
from saccade.distributions import Categorical
from saccade.kernels.modes import exporting
from saccade.kernels.prefixes import Prefixes, prefix_gru
from saccade.layers import RecurrentLayer
from saccade.layers.choices import make_selection
from saccade.layers.code_sum import CodeSum
from saccade.layers.recurrent import reverse
from saccade.models.base import models
from saccade.models.visits import CodeContributions, VisitModel
from saccade.reading import Reading
from saccade.scores import QueryFreeScore
from saccade.selections import Selection

MOST_STEPS = 1 << 16
"""Steps of all prefixes that are in memory at a time: a few hundred megabytes with 128 units."""


@models.register("retain")
class RETAIN(VisitModel):
    r"""Attends to visits (alpha) and to features of their vectors (beta), both computed from the last visit backwards.

    .. math:: v_i = \sum_k x_{ik} E_k, \qquad g_t, ..., g_1 = \mathrm{GRU}_\alpha(v_t, ..., v_1), \qquad
        h_t, ..., h_1 = \mathrm{GRU}_\beta(v_t, ..., v_1)

    .. math:: \alpha = \mathrm{softmax}(w^\top g_i + b)_{i \le t}, \qquad \beta_i = \tanh(V h_i + b'), \qquad
        z_t = W \sum_{i \le t} \alpha_i \, \beta_i \odot v_i + b

    The GRUs also read the time since the visit before. Since z is linear in x once alpha and beta are known, the
    contribution of code k of visit i to class y is exact:

    .. math:: \omega_{iky} = \alpha_i \, W_y (\beta_i \odot E_k) \, x_{ik}, \qquad
        z_y = b_y + \sum_{i, k} \omega_{iky} + \sum_k s_k u_{ky}

    With a label at each visit, every prefix of a record needs GRUs that start at its last visit. They all run at once,
    each step over the prefixes that are long enough (`saccade.kernels.prefixes`).

    Shapes:
        as `VisitModel`.

    Reference:
        Choi et al. (2016), arXiv:1608.05745: E is W_emb, w is w_alpha, V is W_beta, and z is without its softmax. The
        static codes (s, u) are not the paper's. There: all sizes 128, dropout 0.5 of v and of the context.

    Args:
        vocab, static: the numbers of codes of visits and of patients.
        classes: the number of labels.
        each_visit: whether each visit has a label.
        embedding_dim: features of v.
        hidden_dim: features of g and h.
        selection: of the visits, a short name or an instance.
        dropout: of v and of the context.
    """

    def __init__(
        self,
        *,
        vocab: int,
        static: int,
        classes: int,
        each_visit: bool,
        embedding_dim: int = 128,
        hidden_dim: int = 128,
        selection: str | Selection | partial[Selection] = "softmax",
        dropout: float = 0.5,
    ) -> None:
        super().__init__(static=static, classes=classes, each_visit=each_visit, dim=embedding_dim, dropout=dropout)
        self.embedding = CodeSum(vocab=vocab, dim=embedding_dim, deviation=embedding_dim**-0.5)
        self.alpha = RecurrentLayer(input_dim=embedding_dim + 1, hidden_dim=hidden_dim)
        self.beta = RecurrentLayer(input_dim=embedding_dim + 1, hidden_dim=hidden_dim)
        self.attention = Attention(score=QueryFreeScore(key_dim=hidden_dim), selection=make_selection(selection))
        chosen = self.attention.selection
        if chosen.stateful or chosen.joins_queries or not self.attention.aggregation.weighted_sum:
            raise ValueError(
                f"RETAIN gives each visit a separate weight, so that contributions add up: "
                f"{type(chosen).__name__} does not; use softmax, sparsemax or entmax15."
            )
        self.gate_proj = nn.Linear(hidden_dim, embedding_dim)

    def summaries(self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor) -> Tensor:
        visits = F.dropout(self.embedding(codes, amounts), self.dropout, self.training)
        if self.each_visit:
            return self._of_prefixes(visits, mask, gaps)
        return self._read(visits, mask, gaps)[0].context.squeeze(1)

    def _read(self, visits: Tensor, mask: Tensor, gaps: Tensor) -> tuple[Reading, Tensor]:
        """The reading of the visits for the last one, and beta (batch, visits, dim)."""
        keys, beta = self._backwards(visits, mask, gaps)
        return self.attention(None, keys, beta * visits, mask=mask.unsqueeze(1)), beta

    def _backwards(self, visits: Tensor, mask: Tensor, gaps: Tensor) -> tuple[Tensor, Tensor]:
        """The keys of visits (batch, visits, hidden_dim) and beta (batch, visits, dim), from the last visit on."""
        inputs = reverse(torch.cat([visits, gaps.unsqueeze(-1).to(visits)], dim=-1), mask)
        keys, gates = (reverse(layer(inputs, mask)[0], mask) for layer in (self.alpha, self.beta))
        return keys, self.gate_proj(gates).tanh()

    def _of_prefixes(self, visits: Tensor, mask: Tensor, gaps: Tensor) -> Tensor:
        """(batch, visits, dim): the context of each prefix.

        The steps of all prefixes of a record grow with the square of its visits. If a batch has too many, its records
        are read in groups, whose steps are computed again for gradients.
        """
        if exporting():
            contexts, weights = self._as_records(visits, mask, gaps)
            self.attention.note(Reading(contexts, Categorical(weights)))
            return contexts
        groups = _groups(mask.sum(1))
        if len(groups) == 1:
            contexts, weights = self._together(visits, mask, gaps)
        else:
            run = (
                partial(checkpoint, self._together, use_reentrant=False) if torch.is_grad_enabled() else self._together
            )
            parts = [run(visits[rows], mask[rows], gaps[rows]) for rows in groups]
            order = torch.cat(groups).argsort()
            contexts, weights = (torch.cat(several)[order] for several in zip(*parts, strict=True))
        if not self.attention.note(Reading(contexts, Categorical(weights))):
            return self._prefix_by_prefix(visits, mask, gaps)
        return contexts

    def _together(self, visits: Tensor, mask: Tensor, gaps: Tensor) -> tuple[Tensor, Tensor]:
        """The contexts of all prefixes, and the weights of visits (batch, visits, visits)."""
        prefixes = Prefixes.of(mask)
        rows, places = mask.nonzero(as_tuple=True)
        of_row, at, seen = rows[prefixes.ends], places[prefixes.ends], places[prefixes.elements]
        flat = visits[mask]
        inputs = torch.cat([flat, gaps[mask].unsqueeze(-1).to(flat)], dim=-1)
        keys, gates = (
            prefix_gru(layer.input_proj(inputs), weight, inner, prefixes)
            for layer in (self.alpha, self.beta)
            for weight, inner in [layer.cell.tensors()]
        )
        length = mask.shape[1]
        index = (of_row[prefixes.prefixes], at[prefixes.prefixes], seen)
        allowed = mask.new_zeros(len(mask), length, length).index_put(index, mask.new_ones(()))
        scores = keys.new_zeros(len(mask), length, length)
        scores = scores.index_put(index, self.attention.score.prepare(keys).squeeze(-1).to(scores))
        selection = self.attention.selection(scores, allowed)
        alpha = self.attention.aggregation.weights(selection)[index].unsqueeze(-1)
        read = alpha * self.gate_proj(gates).tanh() * flat[prefixes.elements]
        contexts = read.new_zeros(len(flat), read.shape[-1]).index_add(0, prefixes.ends[prefixes.prefixes], read)
        return contexts.new_zeros(*visits.shape).index_put((rows, places), contexts), selection.marginals

    def _as_records(self, visits: Tensor, mask: Tensor, gaps: Tensor) -> tuple[Tensor, Tensor]:
        """The same as `_together` for an exported graph: every prefix is a separate record, padded to full length."""
        batch, length = mask.shape
        until = torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
        each = mask.unsqueeze(1) & until
        rows = visits.repeat_interleave(length, 0), each.flatten(0, 1), gaps.repeat_interleave(length, 0)
        keys, beta = self._backwards(*rows)
        scores = self.attention.score.prepare(keys).reshape(batch, length, length)
        selection = self.attention.selection(scores, each & mask.unsqueeze(2))
        alpha = self.attention.aggregation.weights(selection).unsqueeze(-1)
        values = (beta * rows[0]).reshape(batch, length, length, -1)
        return (alpha * values).sum(2), selection.marginals

    def _prefix_by_prefix(self, visits: Tensor, mask: Tensor, gaps: Tensor) -> Tensor:
        """The plain definition of `_of_prefixes`: each prefix is read as a separate record."""
        found = []
        for end in range(1, mask.shape[1] + 1):
            reading, _ = self._read(visits[:, :end], mask[:, :end], gaps[:, :end])
            found.append(reading.context.squeeze(1) * mask[:, end - 1 : end])
        return torch.stack(found, dim=1)

    @torch.no_grad()
    def contributions(
        self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor, static: Tensor, static_amounts: Tensor
    ) -> CodeContributions:
        """What each code adds to the logits for the last visit, without dropout."""
        reading, beta = self._read(self.embedding(codes, amounts), mask, gaps)
        alpha = reading.weights.transpose(1, 2)  # (batch, visits, 1)
        of_visit = (alpha * beta).unsqueeze(2) * self.output_proj.weight  # (batch, visits, classes, dim)
        found = self.embedding.each(codes, amounts) @ of_visit.mT
        found = found * mask[..., None, None]
        return CodeContributions(found, self.static.each(static, static_amounts), self.output_proj.bias)


def _groups(lengths: Tensor) -> list[Tensor]:
    """The numbers of records (batch,) in groups whose prefixes have at most `MOST_STEPS` steps, or of one record."""
    groups: list[list[int]] = [[]]
    steps = 0
    for row, length in enumerate(lengths.tolist()):
        own = length * (length + 1) // 2
        if groups[-1] and steps + own > MOST_STEPS:
            groups.append([])
            steps = 0
        groups[-1].append(row)
        steps += own
    return [torch.tensor(group, dtype=torch.long, device=lengths.device) for group in groups]
