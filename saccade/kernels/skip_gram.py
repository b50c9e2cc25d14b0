"""Steps of skip-gram with negative sampling."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from saccade.kernels import native

MOST_LANES = 16
"""Numbers in the longest vector of any processor."""


def coefficients(
    contexts: Int[Tensor, "n c"], real: Bool[Tensor, "n c"], negatives: Int[Tensor, "n k"]
) -> tuple[Float[Tensor, "n c+k"], Float[Tensor, "n c+k"]]:
    """How often each target of a centre, its contexts and then its negatives, counts as a context and as a negative.

    The contexts of a centre share its negatives, each of which counts once for every context that is another word.
    """
    positive = torch.cat([real.float(), torch.zeros(negatives.shape)], dim=1)
    same = (negatives.unsqueeze(2) == contexts.unsqueeze(1)) & real.unsqueeze(1)
    counted = real.sum(1, keepdim=True) - same.sum(2)
    return positive, torch.cat([torch.zeros(real.shape), counted.float()], dim=1)


def loss(
    v: Float[Tensor, "n d"], u: Float[Tensor, "n t d"], positive: Float[Tensor, "n t"], negative: Float[Tensor, "n t"]
) -> Float[Tensor, ""]:
    r"""The loss of some centres with vectors v and targets with vectors u, summed.

    .. math:: -\sum_c \log \sigma(v^\top u_c) - \sum_c \sum_{i=1}^{k} \log \sigma(-v^\top u_{n_i})
    """
    scores = (u @ v.unsqueeze(2)).squeeze(2)
    return -(positive * F.logsigmoid(scores) + negative * F.logsigmoid(-scores)).sum()


def gradients(
    v: Float[Tensor, "n d"], u: Float[Tensor, "n t d"], positive: Float[Tensor, "n t"], negative: Float[Tensor, "n t"]
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n t d"]]:
    """The derivatives of `loss` by v and by u."""
    risen = torch.sigmoid((u @ v.unsqueeze(2)).squeeze(2))
    error = negative * risen - positive * (1.0 - risen)
    return (error.unsqueeze(1) @ u).squeeze(1), error.unsqueeze(2) * v.unsqueeze(1)


def skip_gram_reference_(
    inner: Float[Tensor, "v d"],
    outer: Float[Tensor, "v d"],
    centres: Int[Tensor, " n"],
    contexts: Int[Tensor, "n c"],
    real: Bool[Tensor, "n c"],
    negatives: Int[Tensor, "n k"],
    rates: Float[Tensor, " batches"],
    batch: int,
) -> None:
    """Changes the vectors by a gradient step for each batch of centres, in place.

    Args:
        inner, outer: the vectors v of words as centres, and u as targets.
        centres, contexts, negatives: the ids of words.
        real: which contexts count.
        rates: the learning rate of each batch.
        batch: centres whose gradients are computed before any of their updates.
    """
    parts = zip(*(each.split(batch) for each in (centres, contexts, real, negatives)), rates.tolist(), strict=True)
    for words, near, counted, others, rate in parts:
        targets = torch.cat([near, others], dim=1)
        sides = (side.to(inner.dtype) for side in coefficients(near, counted, others))
        for_v, for_u = gradients(inner[words], outer[targets], *sides)
        inner.index_add_(0, words, for_v, alpha=-rate)
        outer.index_add_(0, targets.flatten(), for_u.flatten(0, 1), alpha=-rate)


@torch.no_grad()
def skip_gram_(
    inner: Float[Tensor, "v d"],
    outer: Float[Tensor, "v d"],
    centres: Int[Tensor, " n"],
    contexts: Int[Tensor, "n c"],
    real: Bool[Tensor, "n c"],
    negatives: Int[Tensor, "n k"],
    rates: Float[Tensor, " batches"],
    batch: int,
) -> None:
    """`skip_gram_reference_`, without gathering vectors: each target is read where it is."""
    if not len(centres):
        return
    rows = {len(each) for each in (centres, contexts, real, negatives)}
    if inner.shape != outer.shape or len(rows) > 1 or len(rates) != -(-len(centres) // batch):
        raise ValueError(
            "inner and outer must have one shape, centres, contexts, real and negatives one number of rows, and there "
            "must be a rate for each batch."
        )
    contiguous = inner.is_contiguous() and outer.is_contiguous()
    if not contiguous or not native.usable(inner, outer) or inner.dtype != outer.dtype:
        skip_gram_reference_(inner, outer, centres, contexts, real, negatives, rates, batch)
        return
    for ids in (centres, contexts, negatives):
        if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= len(inner)):
            raise IndexError(f"ids must be from 0 to {len(inner) - 1}, got {ids.min()} to {ids.max()}.")
    width, drawn, dim = contexts.shape[1], negatives.shape[1], inner.shape[1]
    native.run(
        native.function("skip_gram", inner.dtype),
        inner,
        outer,
        *(each.contiguous() for each in (centres.long(), contexts.long(), real.bool(), negatives.long())),
        rates.double().contiguous(),
        len(centres),
        batch,
        width,
        drawn,
        dim,
        inner.new_empty(batch, width + drawn + MOST_LANES),
        inner.new_empty(batch, dim),
        items=-(-len(centres) // batch),
        operations=0,  # batches follow one another
    )
