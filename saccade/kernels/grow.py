"""Reorders and extends a cache in one copy."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.kernels import native


def grow_reference(
    old: Float[Tensor, "some *h t d"], new: Float[Tensor, "n *h a d"], rows: Int[Tensor, " n"] | None
) -> Float[Tensor, "n *h t+a d"]:
    """The selected rows of `old`, or all if None, each followed by its row of `new`."""
    return torch.cat([old if rows is None else old.index_select(0, rows), new], dim=-2)


def grow(
    old: Float[Tensor, "some *h t d"], new: Float[Tensor, "n *h a d"], rows: Int[Tensor, " n"] | None
) -> Float[Tensor, "n *h t+a d"]:
    """`grow_reference`, copying each number only once if no gradient is needed."""
    tracked = torch.is_grad_enabled() and (old.requires_grad or new.requires_grad)
    plain = rows is None or old.dim() != 4 or tracked or old.dtype != new.dtype or new.stride(-1) != 1
    if plain or not native.usable(old, new):
        return grow_reference(old, new, rows)
    assert rows is not None
    count, heads, added, size = new.shape
    length = old.shape[-2]
    out = old.new_empty(count, heads, length + added, size)
    native.run(
        native.function("grow", old.dtype),
        old.contiguous(),
        rows.contiguous(),
        new,
        out,
        heads,
        length,
        added,
        size,
        new.stride(0),
        new.stride(1),
        new.stride(2),
        items=count,
        operations=out.numel(),
    )
    return out
