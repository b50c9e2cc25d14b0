"""Where the words of an answer came from, once all of them are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from saccade.data.special import BOS, EOS, PAD
from saccade.decoders import shift_right
from saccade.models.aligned import AlignedModel
from saccade.search import Hypothesis


def sums_alignments(model: nn.Module) -> TypeGuard[AlignedModel]:
    """Whether a model is trained by its `alignment`: the distribution over where each word comes from."""
    return callable(getattr(model, "alignment", None))


def with_posteriors(
    model: AlignedModel, source: Tensor, mask: Tensor, hypotheses: Sequence[Sequence[Hypothesis]]
) -> list[list[Hypothesis]]:
    """The hypotheses with weights p(a_t | y), which take into account the words after each step as well.

    Args:
        model: one that `sums_alignments`; a model that decodes online keeps the positions it chose.
        source: (batch, length), with hypotheses for each row.
        mask: bool, True = real.
    """
    flat = [(row, h) for row, several in enumerate(hypotheses) for h in several]
    if model.online or all(h.weights is None for _, h in flat):
        return [list(several) for several in hypotheses]
    rows = torch.tensor([row for row, _ in flat], device=source.device)
    targets = [torch.tensor([*h.tokens, *([EOS] if h.finished else [])], device=source.device) for _, h in flat]
    target = pad_sequence(targets, batch_first=True, padding_value=PAD).long()
    with torch.no_grad():
        alignment = model.alignment(source[rows], mask[rows], shift_right(target, BOS), target, target != PAD)
    posteriors = iter(alignment.marginals[:, :, : source.shape[1]])
    return [
        [h._replace(weights=next(posteriors)[: len(h.tokens) + h.finished]) for h in several] for several in hypotheses
    ]
