"""How the ways to produce a word share its probability."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.kernels.picked_logits import Picked

LOWEST = -1e30
"""The log-weight of missing entries: finite, so that nothing becomes NaN if all of them are missing."""


class Shared(NamedTuple):
    """How probability was shared.

    Args:
        generate: (*,), what is added to each logit of the vocabulary to make it a log-probability.
        others: (*, entries) of each other way, log-probabilities.
    """

    generate: Tensor
    others: list[Tensor]


class Blend(nn.Module):
    """Turns the scores of several ways to produce a word into one distribution.

    Its probabilities, summed over the vocabulary and over the entries of all other ways, are 1.
    """

    shifts_logits: bool = False
    """Whether `forward` needs the logits of the entries' words."""

    reads_cue: bool = False
    """Whether `forward` needs a cue."""

    def forward(self, cue: Tensor | None, generated: Picked, scores: list[Tensor]) -> Shared:
        """Shares probability.

        Args:
            cue: (*, cue_dim), what it may depend on.
            generated: the total of the vocabulary's logits (*,), and with `shifts_logits` the logits of the words that
                the entries of the other ways say, one way after another.
            scores: (*, entries) of each other way, log-weights; `LOWEST` where there is no entry.
        """
        raise NotImplementedError


class SharedSoftmax(Blend):
    r"""One softmax over the vocabulary and all entries.

    .. math:: p(y) = \frac{1}{Z} \Big( e^{\psi_g(y)} + \sum_{j : x_j = y} e^{\psi_c(j)} \Big)

    Reference:
        Gu et al. (2016), arXiv:1603.06393, equations 5 and 6.
    """

    def forward(self, cue: Tensor | None, generated: Picked, scores: list[Tensor]) -> Shared:
        total = torch.cat([generated.total.unsqueeze(-1), *scores], dim=-1).logsumexp(-1)
        return Shared(-total, [each - total.unsqueeze(-1) for each in scores])


class Gate(Blend):
    r"""A learned gate decides between the ways, each of which has its own softmax.

    .. math:: p(y) = p_{gen} P_{vocab}(y) + (1 - p_{gen}) \sum_{j : x_j = y} a_j, \qquad
        p_{gen} = \sigma(w^\top [c; s; x] + b)

    With more than two ways the gate is a softmax. A way without entries leaves its share to the others.

    Reference:
        See et al. (2017), arXiv:1704.04368, equations 8 and 9.

    Args:
        cue_dim: features of the cue; 0 learns a constant, the linear interpolation of Arthur et al. (2016),
            arXiv:1606.02006, equation 4.
        ways: how many ways there are, generating among them.
    """

    def __init__(self, *, cue_dim: int, ways: int = 2) -> None:
        super().__init__()
        self.reads_cue = cue_dim > 0
        self.proj = nn.Linear(cue_dim, ways - 1) if cue_dim else None
        self.constant = None if cue_dim else nn.Parameter(torch.zeros(ways - 1))

    def forward(self, cue: Tensor | None, generated: Picked, scores: list[Tensor]) -> Shared:
        if self.proj is not None:
            if cue is None:
                raise ValueError("This gate depends on a cue, but got none.")
            learned = self.proj(cue).to(generated.total.dtype)
        else:
            assert self.constant is not None
            learned = self.constant.expand(*generated.total.shape, -1)
        return gated(learned, generated, scores)


class GivenGate(Blend):
    r"""A gate whose logit the model computes itself.

    .. math:: p(y) = (1 - \lambda) P_{vocab}(y) + \lambda \sum_{j : x_j = y} \kappa_j, \qquad
        \lambda = \sigma(-\text{cue})

    Reference:
        Allamanis et al. (2016), arXiv:1602.03001, section 2.2.
    """

    reads_cue = True

    def forward(self, cue: Tensor | None, generated: Picked, scores: list[Tensor]) -> Shared:
        if cue is None:
            raise ValueError("This gate is its cue, but got none.")
        return gated(cue.to(generated.total.dtype), generated, scores)


def gated(logits: Tensor, generated: Picked, scores: list[Tensor]) -> Shared:
    """Ways with separate softmaxes, and gates between them.

    Args:
        logits: (*, ways - 1), of generating and of all other ways but the last, which has 0.
        generated, scores: as for a `Blend`.
    """
    empty = torch.stack([(each <= LOWEST / 2).all(-1) for each in scores], dim=-1)
    of_all = F.pad(logits, (0, 1))
    gates = torch.cat([of_all[..., :1], of_all[..., 1:].masked_fill(empty, LOWEST)], dim=-1).log_softmax(-1)
    shares = zip(gates[..., 1:].unbind(-1), scores, strict=True)
    others = [gate.unsqueeze(-1) + each.log_softmax(-1) for gate, each in shares]
    return Shared(gates[..., 0] - generated.total, others)


class Sentinel(Blend):
    r"""The entries compete with a sentinel, whose share goes to the vocabulary.

    .. math:: a = \operatorname{softmax}([z; q^\top s]), \qquad p(y) = a_s P_{vocab}(y) + \sum_{i : x_i = y} a_i

    Reference:
        Merity et al. (2016), arXiv:1609.07843, equations 5 to 8.

    Args:
        cue_dim: features of the cue, the query q.
    """

    reads_cue = True

    def __init__(self, *, cue_dim: int) -> None:
        super().__init__()
        self.sentinel = nn.Parameter(torch.randn(cue_dim) * cue_dim**-0.5)

    def forward(self, cue: Tensor | None, generated: Picked, scores: list[Tensor]) -> Shared:
        if cue is None:
            raise ValueError("A sentinel is compared with a query, the cue, but got none.")
        sentinel = (cue @ self.sentinel).to(generated.total.dtype)
        total = torch.cat([sentinel.unsqueeze(-1), *scores], dim=-1).logsumexp(-1)
        return Shared(sentinel - generated.total - total, [each - total.unsqueeze(-1) for each in scores])


class Bias(Blend):
    r"""Entries raise the logits of their words.

    .. math:: p = \operatorname{softmax}\big(W \eta + b + \log(p_{lex} + \epsilon)\big)

    This is one softmax over logits plus log epsilon, and over entries with the logit of their word plus their own
    log-weight, so that each part's share of a word is known.

    Reference:
        Arthur et al. (2016), arXiv:1606.02006, equation 3.

    Args:
        epsilon: what words have that no entry says; less makes the entries count more.
    """

    shifts_logits = True

    def __init__(self, *, epsilon: float = 0.001) -> None:
        super().__init__()
        if not epsilon > 0.0:
            raise ValueError(f"epsilon must be above 0, got {epsilon}.")
        self.epsilon = epsilon

    def forward(self, cue: Tensor | None, generated: Picked, scores: list[Tensor]) -> Shared:
        least = torch.tensor(self.epsilon, dtype=generated.total.dtype, device=generated.total.device).log()
        sizes = [each.shape[-1] for each in scores]
        raised = [
            (own + logits).clamp(min=LOWEST)
            for own, logits in zip(scores, generated.logits.split(sizes, dim=-1), strict=True)
        ]
        total = torch.cat([(generated.total + least).unsqueeze(-1), *raised], dim=-1).logsumexp(-1)
        return Shared(least - total, [each - total.unsqueeze(-1) for each in raised])
