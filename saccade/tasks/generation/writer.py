"""The model of a generation task."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.decoders import Decoded
from saccade.models import EncoderDecoder


def writer(model: nn.Module) -> EncoderDecoder:
    """The model of such a task, which may be any module with the methods of an `EncoderDecoder`."""
    return cast(EncoderDecoder, model)


@torch.no_grad()
def log_likelihoods(model: EncoderDecoder, decoded: Decoded, target: Tensor, real: Tensor) -> Tensor:
    """(batch,): the log-probability of each target, the sum over its real tokens, without a graph."""
    logits = model.head.logits(decoded.features[real])
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = F.cross_entropy(exact, target[real], reduction="none")
    return losses.new_zeros(real.shape).masked_scatter(real, -losses).sum(1)
