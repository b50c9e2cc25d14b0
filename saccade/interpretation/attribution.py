"""Attribution: how strongly a prediction depends on each source token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.models import EncoderDecoder


def gradient_times_input(
    model: EncoderDecoder, source: Tensor, source_mask: Tensor, target: Tensor, target_in: Tensor
) -> Tensor:
    r"""How strongly the log-probability of each target token depends on each source token's embedding.

    .. math:: g_{ij} = \left| e_j^\top \frac{\partial \log p(y_i \mid y_{<i}, x)}{\partial e_j} \right|

    Shapes:
        source (length), source_mask bool (length), target (steps), target_in (steps), the start token first
        -> (steps, length).

    Reference:
        Denil et al. (2014), arXiv:1412.6815; as a test of attention: Jain & Wallace (2019), arXiv:1902.10186.
    """
    table = next((part for part in model.encoder.modules() if isinstance(part, nn.Embedding)), None)
    if table is None:
        raise TypeError(f"{type(model.encoder).__name__} has no nn.Embedding, so there is no gradient by source token.")
    steps = len(target)
    embedded: list[Tensor] = []

    def separate(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    with torch.enable_grad():
        handle = table.register_forward_hook(separate)  # not while decoding: the decoder may share the table
        try:  # each step has its own copy of the source, so one backward pass separates their gradients
            encoded = model.encode(source.expand(steps, -1), source_mask.expand(steps, -1))
        finally:
            handle.remove()
        decoded = model.decoder(encoded, target_in.expand(steps, -1))
        each = torch.arange(steps, device=target.device)
        log_probs = model.head.logits(decoded.features[each, each]).float().log_softmax(dim=-1)
        (gradient,) = torch.autograd.grad(log_probs[each, target].sum(), embedded[0])
    return (gradient * embedded[0].detach()).sum(dim=-1).abs()
