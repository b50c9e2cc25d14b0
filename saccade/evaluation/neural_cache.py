"""A cache of recent words for a language model."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.checks import check_count


class Remembered(NamedTuple):
    """The content of a cache: states (batch, places, dim), the tokens that followed them, and which are real."""

    states: Tensor
    tokens: Tensor
    real: Tensor


class NeuralCache:
    r"""Lets a trained language model repeat recent words, by comparing its state with earlier ones.

    .. math:: p(w) = (1 - \lambda)\, p_{model}(w) + \lambda\, p_{cache}(w), \qquad
        p_{cache}(w) \propto \sum_{i} [w = x_{i+1}] \exp(\theta\, h_t^\top h_i)

    The sum is over the last `size` positions. Nothing is trained. While the cache is empty, only the model counts.

    Reference:
        Grave et al. (2017), arXiv:1612.04426.

    Args:
        size: how many positions are remembered.
        weight: lambda, from 0 to less than 1.
        flatness: theta; 0 counts words, higher values prefer those that followed similar states.
    """

    def __init__(self, *, size: int = 500, weight: float = 0.1, flatness: float = 0.3) -> None:
        check_count("cache_size", size)
        if not 0.0 <= weight < 1.0:
            raise ValueError(f"cache_weight must be from 0 to less than 1, got {weight}.")
        if not flatness >= 0.0:
            raise ValueError(f"cache_flatness must be 0 or more, got {flatness}.")
        self.size, self.weight, self.flatness = size, weight, flatness

    def mixed(
        self, logits: Tensor, states: Tensor, targets: Tensor, real: Tensor, before: Remembered | None
    ) -> tuple[Tensor, Remembered]:
        """The log-probabilities of model and cache together, and what is remembered after this piece.

        Args:
            logits: (positions, vocab): the model's, of the positions that are real.
            states: (batch, length, dim).
            targets: (batch, length): the token that followed each state.
            real: bool (batch, length), padding last.
            before: what was remembered before the piece; None at the beginning of a text.
        """
        batch, length, _ = states.shape
        known = Remembered(states, targets, real)
        if before is not None:
            known = Remembered(*(torch.cat(pair, dim=1) for pair in zip(before, known, strict=True)))
        past = known.tokens.shape[1] - length
        key = torch.arange(past + length, device=states.device)
        query = key[past:, None]
        seen = (key < query) & (key >= query - self.size) & known.real.unsqueeze(1)
        scores = (self.flatness * states @ known.states.mT).masked_fill(~seen, -torch.inf)
        weights = torch.nan_to_num(scores.float().softmax(-1))[real]
        share = self.weight * seen.any(-1)[real].unsqueeze(-1)
        repeated = known.tokens.unsqueeze(1).expand(batch, length, -1)[real]
        generated = logits.float().log_softmax(-1) + torch.log1p(-share)
        cached = torch.zeros_like(generated).scatter_add(1, repeated, share * weights).log()
        return torch.logaddexp(generated, cached), Remembered(*(each[:, -self.size :] for each in known))
