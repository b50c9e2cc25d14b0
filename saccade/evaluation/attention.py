"""Metrics of attention maps without gold alignments: blur, coverage, agreement of two directions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from torch import Tensor


def blur(weights: Tensor) -> Tensor:
    r"""The entropy of each normalised row in nats: 0 for a single position, log n for n equal ones.

    .. math:: H_i = -\sum_j \hat w_{ij} \log \hat w_{ij}, \qquad \hat w_{ij} = w_{ij} / \sum_l w_{il}

    The entropy of a row without any weight is NaN.

    Shapes:
        weights (*batch, target, source) -> (*batch, target).
    """
    shares = weights / weights.sum(dim=-1, keepdim=True)
    return -(shares * shares.where(shares > 0, 1).log()).sum(dim=-1)


def mean_blur(weights: Sequence[Tensor]) -> float:
    """The mean entropy of the rows of several maps, ignoring rows without weight; NaN if there are no others."""
    rows: list[float] = [row for matrix in weights for row in blur(matrix).flatten().tolist() if not math.isnan(row)]
    return sum(rows) / len(rows) if rows else math.nan


class CoverageProfile(NamedTuple):
    """How much attention each source word received from all target words together."""

    totals: list[float]
    dropped: list[int]
    """Source words that received less than `low`: perhaps left untranslated."""
    repeated: list[int]
    """Source words that received more than `high`: perhaps translated more than once."""

    @property
    def share(self) -> float:
        """The mean of min(received, 1): 1 if every word received at least the attention of one target word."""
        return sum(min(total, 1.0) for total in self.totals) / max(len(self.totals), 1)


def coverage(weights: Tensor, *, low: float = 0.2, high: float = 2.0) -> CoverageProfile:
    r"""The attention that each source word received.

    .. math:: C_j = \sum_i w_{ij}

    Shapes:
        weights (target, source), of words.

    Reference:
        Tu et al. (2016), arXiv:1601.04811; the share follows Wu et al. (2016), arXiv:1609.08144, without logarithms.

    Args:
        weights: the attention of each target word to each source word.
        low: a source word that received less counts as dropped.
        high: a source word that received more counts as repeated.
    """
    if not 0 <= low <= high:
        raise ValueError(f"low and high must be 0 or more and in this order, got low={low} and high={high}.")
    totals: list[float] = weights.sum(dim=-2).tolist()
    dropped = [place for place, total in enumerate(totals) if total < low]
    return CoverageProfile(totals, dropped, [place for place, total in enumerate(totals) if total > high])


def agreement(forward: Iterable[Hashable], backward: Iterable[Hashable]) -> float:
    r"""The share of links that two directions have in common, from 0 to 1.

    .. math:: \frac{2 |A \cap B|}{|A| + |B|}

    Args:
        forward: (source, target) links of one direction.
        backward: the links of the other direction, also (source, target).
    """
    there, back = set(forward), set(backward)
    return 2 * len(there & back) / (len(there) + len(back)) if there or back else 1.0


def soft_agreement(forward: Tensor, backward: Tensor) -> float:
    r"""How far the attention of two directions is mutual, from 0 to 1.

    .. math:: \frac{1}{T} \operatorname{tr}(A^{\rightarrow} A^{\leftarrow})

    Shapes:
        forward (target, source), backward (source, target).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, section 3.4, divided by the number T of target words.
    """
    if forward.shape != backward.T.shape:
        raise ValueError(
            f"backward must be (source, target) for forward (target, source) = {tuple(forward.shape)}, got "
            f"{tuple(backward.shape)}."
        )
    return float((forward * backward.T).sum()) / max(len(forward), 1)
