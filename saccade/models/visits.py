"""Classification of patient records: the common base of such models, and RETAIN's baselines."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade import masks
from saccade.attention import Attention
from saccade.checks import check_count
from saccade.layers import FeedForward, RecurrentLayer, SinusoidalPositions, TransformerEncoderLayer
from saccade.layers.code_sum import CodeSum
from saccade.layers.recurrent import last_real
from saccade.models.base import models
from saccade.multihead import MultiHead
from saccade.scores import ScaledDotScore


class CodeContributions(NamedTuple):
    """What each code adds to the logits for the last visit; their sum and the bias are the logits.

    Args:
        codes: (batch, visits, codes, classes).
        static: (batch, static codes, classes).
        bias: (classes,).
    """

    codes: Tensor
    static: Tensor
    bias: Tensor


class VisitModel(nn.Module):
    r"""Labels a record, or each of its visits, from a vector per visit and static features of the patient.

    .. math:: z_t = W c_t + b + \sum_k s_k u_k

    A new model implements `summaries`, the vectors c_t, each of which depends only on visits up to t.

    Shapes:
        codes (batch, visits, codes), 0 = padding; mask bool (batch, visits), padding last; amounts (batch, visits,
        codes); gaps (batch, visits): log(1 + days) since the visit before; static (batch, n) with static_amounts
        (batch, n) -> logits (batch, classes) for the last visit, or (batch, visits, classes) with `each_visit`.
    """

    def __init__(self, *, static: int, classes: int, each_visit: bool, dim: int, dropout: float) -> None:
        super().__init__()
        self.each_visit = each_visit
        self.output_proj = nn.Linear(dim, classes)
        self.static = CodeSum(vocab=static, dim=classes, deviation=0.0)
        self.dropout = dropout

    def forward(
        self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor, static: Tensor, static_amounts: Tensor
    ) -> Tensor:
        found = self.summaries(codes, mask, amounts, gaps)
        known: Tensor = self.static(static, static_amounts)
        logits: Tensor = self.output_proj(F.dropout(found, self.dropout, self.training))
        return logits + (known.unsqueeze(1) if self.each_visit else known)

    def summaries(self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor) -> Tensor:
        """(batch, dim) for the last visit, or (batch, visits, dim) with `each_visit`."""
        raise NotImplementedError


@models.register("visit_rnn")
class VisitRNN(VisitModel):
    r"""A recurrent network over visits: the usual model of records, without explanations.

    .. math:: h_t = \mathrm{RNN}([v_t; \Delta_t], h_{t-1}), \qquad v_t = \sum_k x_{tk} E_k, \qquad z_t = W h_t + b

    Shapes:
        as `VisitModel`.

    Reference:
        Choi et al. (2016), "Doctor AI", arXiv:1511.05942; the baseline RNN of Choi et al. (2016), arXiv:1608.05745.

    Args:
        vocab, static: the numbers of codes of visits and of patients.
        classes: the number of labels.
        each_visit: whether each visit has a label.
        embedding_dim: features of v.
        hidden_dim: features of h.
        num_layers: how many recurrent layers there are.
        cell: gru, paper_gru or lstm.
        dropout: of v, between layers and before the output.
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
        num_layers: int = 1,
        cell: Literal["gru", "paper_gru", "lstm"] = "gru",
        dropout: float = 0.5,
    ) -> None:
        super().__init__(static=static, classes=classes, each_visit=each_visit, dim=hidden_dim, dropout=dropout)
        check_count("num_layers", num_layers)
        self.embedding = CodeSum(vocab=vocab, dim=embedding_dim, deviation=embedding_dim**-0.5)
        self.layers = nn.ModuleList(
            RecurrentLayer(input_dim=hidden_dim if number else embedding_dim + 1, hidden_dim=hidden_dim, cell=cell)
            for number in range(num_layers)
        )

    def summaries(self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor) -> Tensor:
        visits = F.dropout(self.embedding(codes, amounts), self.dropout, self.training)
        states = torch.cat([visits, gaps.unsqueeze(-1).to(visits)], dim=-1)
        for number, layer in enumerate(self.layers):
            states = F.dropout(states, self.dropout, self.training) if number else states
            states, final = layer(states, mask)
        return states if self.each_visit else final[0]


@models.register("visit_transformer")
class VisitTransformer(VisitModel):
    r"""A causal Transformer over visits.

    .. math:: h = \mathrm{Transformer}(P [v; \Delta] + p), \qquad v_t = \sum_k x_{tk} E_k, \qquad z_t = W h_t + b

    A visit attends to itself and to those before it; p are sinusoidal positions.

    Shapes:
        as `VisitModel`.

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762; over visits: Li et al. (2020), "BEHRT", arXiv:1907.09538.

    Args:
        vocab, static: the numbers of codes of visits and of patients.
        classes: the number of labels.
        each_visit: whether each visit has a label.
        dim: features of every state.
        num_heads, num_layers: how many heads each of the layers has.
        dropout: of v, of every sublayer and before the output.
    """

    def __init__(
        self,
        *,
        vocab: int,
        static: int,
        classes: int,
        each_visit: bool,
        dim: int = 128,
        num_heads: int = 4,
        num_layers: int = 2,
        dropout: float = 0.2,
    ) -> None:
        super().__init__(static=static, classes=classes, each_visit=each_visit, dim=dim, dropout=dropout)
        check_count("num_layers", num_layers)
        if dim % num_heads:
            raise ValueError(f"dim must be a multiple of num_heads, got dim={dim} and num_heads={num_heads}.")

        def layer() -> TransformerEncoderLayer:
            heads = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=num_heads, query_dim=dim)
            feed_forward = FeedForward(dim=dim, hidden_dim=4 * dim, activation="gelu")
            return TransformerEncoderLayer(self_attention=heads, feed_forward=feed_forward, dropout=dropout)

        self.embedding = CodeSum(vocab=vocab, dim=dim, deviation=dim**-0.5)
        self.input_proj = nn.Linear(dim + 1, dim)
        self.positions = SinusoidalPositions(dim=dim)
        self.layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(dim)

    def summaries(self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor) -> Tensor:
        visits = self.embedding(codes, amounts)
        states = self.input_proj(torch.cat([visits, gaps.unsqueeze(-1).to(visits)], dim=-1))
        states = F.dropout(states + self.positions(states.shape[1]), self.dropout, self.training)
        for layer in self.layers:  # padding comes last: a causal mask keeps real visits from seeing it
            states = layer(states, masks.causal())
        states = self.final_norm(states)
        return states if self.each_visit else last_real((states,), mask)[0]


@models.register("visit_bag")
class VisitBag(nn.Module):
    r"""Logistic regression on the counts of all codes up to a visit, regardless of order.

    .. math:: z_t = b + \sum_{j \le t} \sum_k x_{jk} w_k + \sum_k s_k u_k

    Each code contributes its own weight. `trainer.weight_decay` is the strength of an L2 penalty.

    Shapes:
        as `VisitModel`.

    Args:
        vocab, static: the numbers of codes of visits and of patients.
        classes: the number of labels.
        each_visit: whether each visit has a label.
    """

    def __init__(self, *, vocab: int, static: int, classes: int, each_visit: bool) -> None:
        super().__init__()
        self.each_visit = each_visit
        self.codes = CodeSum(vocab=vocab, dim=classes, deviation=0.0)
        self.static = CodeSum(vocab=static, dim=classes, deviation=0.0)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor, static: Tensor, static_amounts: Tensor
    ) -> Tensor:
        visits: Tensor = self.codes(codes, amounts) * mask.unsqueeze(-1)
        known: Tensor = self.static(static, static_amounts) + self.bias
        return visits.cumsum(1) + known.unsqueeze(1) if self.each_visit else visits.sum(1) + known

    def contributions(
        self, codes: Tensor, mask: Tensor, amounts: Tensor, gaps: Tensor, static: Tensor, static_amounts: Tensor
    ) -> CodeContributions:
        """What each code adds to the logits for the last visit: its weight, times its amount."""
        found = self.codes.each(codes, amounts) * mask[..., None, None]
        return CodeContributions(found, self.static.each(static, static_amounts), self.bias)
