"""Latency: how much of the source has been read when each word is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Latency(NamedTuple):
    """How far a model that reads from left to right lags behind its source.

    Args:
        delay: the number of source positions read before a word is written, averaged over words.
        proportion: the same as a share of the source; 1 for a model that reads all of it first.
        lagging: by how many positions it lags behind a model that writes at an even pace while reading, over the words
            written before the end of the source.
    """

    delay: float
    proportion: float
    lagging: float


def positions_read(weights: Tensor) -> Tensor:
    """(steps,): the number of sources read at each step, given its weights (steps, sources).

    This includes all sources up to the last with any weight; a step without any weight found no place to stop and has
    read all of them.
    """
    sources = weights.shape[-1]
    if not weights.numel():
        return torch.zeros(len(weights), dtype=torch.long, device=weights.device)
    read = torch.where(weights != 0, torch.arange(1, sources + 1, device=weights.device), 0).amax(-1)
    return torch.where(read > 0, read, sources).cummax(-1).values


def latency(weights: Sequence[Tensor]) -> Latency:
    r"""Delay, average proportion and average lagging of predictions, each with weights (steps, sources).

    .. math:: \text{AP} = \frac{1}{S\,T} \sum_t g(t), \qquad
        \text{AL} = \frac{1}{\tau} \sum_{t=1}^{\tau} g(t) - (t - 1) \frac{S}{T}, \qquad
        \tau = \min \{t : g(t) = S\}

    g(t) is the number of sources read before word t is written. Proportion and lagging are means over predictions;
    those without a word or a source are ignored.

    Reference:
        Cho and Esipova (2016), arXiv:1606.02012, average proportion; Ma et al. (2019), arXiv:1810.08398, lagging.
    """
    delays: list[float] = []
    proportions: list[float] = []
    lags: list[float] = []
    for one in weights:
        steps, sources = one.shape
        if not steps or not sources:
            continue
        read = positions_read(one).tolist()
        delays += read
        proportions.append(sum(read) / (steps * sources))
        until = next((t for t, g in enumerate(read, start=1) if g == sources), steps)
        lags.append(sum(read[t] - t * sources / steps for t in range(until)) / until)
    if not delays:
        raise ValueError("no prediction has attention weights: latency needs a model with attention.")
    return Latency(_mean(delays), _mean(proportions), _mean(lags))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
