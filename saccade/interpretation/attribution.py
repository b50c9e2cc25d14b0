"""Attribution: how strongly a prediction depends on each token of the input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from saccade.models import EncoderDecoder


def gradient_times_input(
    model: EncoderDecoder,
    source: Tensor,
    source_mask: Tensor,
    target: Tensor,
    target_in: Tensor,
    words: Tensor | None = None,
) -> Tensor:
    r"""How strongly the log-probability of each target token depends on each source token's embedding.

    .. math:: g_{ij} = \left| e_j^\top \frac{\partial \log p(y_i \mid y_{<i}, x)}{\partial e_j} \right|

    Shapes:
        source (length), source_mask bool (length), target (steps), target_in (steps), the start token first, and for a
        model that copies words (length) -> (steps, length).

    Reference:
        Denil et al. (2014), arXiv:1412.6815; as a test of attention: Jain & Wallace (2019), arXiv:1902.10186.
    """
    steps = len(target)
    with torch.enable_grad():
        with _embedded(model.encoder) as embedded:  # not while decoding: the decoder may share the table
            # Each step has its own copy of the source, so one backward pass separates their gradients.
            said = {} if words is None else {"words": words.expand(steps, -1)}
            encoded = model.encode(source.expand(steps, -1), source_mask.expand(steps, -1), **said)
        decoded = model.decoder(encoded, target_in.expand(steps, -1))
        each = torch.arange(steps, device=target.device)
        log_probs = model.head.logits(decoded.features[each, each]).float().log_softmax(dim=-1)
        (gradient,) = torch.autograd.grad(log_probs[each, target].sum(), embedded[0])
    return (gradient * embedded[0].detach()).sum(dim=-1).abs()


def label_gradient_times_input(model: nn.Module, *inputs: Tensor) -> Tensor:
    r"""How strongly the log-probability of the predicted label depends on each token's embedding.

    .. math:: g_j = \left| e_j^\top \frac{\partial \log p(\hat y \mid x)}{\partial e_j} \right|

    Shapes:
        the inputs of a classifier, tokens (batch, length) among them, which gives logits (batch, classes)
        -> (batch, length).

    Reference:
        As `gradient_times_input`.
    """
    with torch.enable_grad(), _embedded(model) as embedded:
        log_probs = model(*inputs).float().log_softmax(dim=-1)
        (gradient,) = torch.autograd.grad(log_probs.max(dim=-1).values.sum(), embedded[0])
    return (gradient * embedded[0].detach()).sum(dim=-1).abs()


@contextmanager
def _embedded(model: nn.Module) -> Iterator[list[Tensor]]:
    """A context that captures the output of the first embedding table, where gradients end."""
    table = next((part for part in model.modules() if isinstance(part, nn.Embedding)), None)
    if table is None:
        raise TypeError(f"{type(model).__name__} has no nn.Embedding, so there is no gradient by token.")
    found: list[Tensor] = []

    def separate(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        found.append(output.detach().requires_grad_())
        return found[-1]

    handle = table.register_forward_hook(separate)
    try:
        yield found
    finally:
        handle.remove()
