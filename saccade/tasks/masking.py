"""Which tokens of a text a masked language model has to predict."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.special import EOS, NAMES


class Masked(NamedTuple):
    """A text with hidden tokens."""

    given: Tensor
    """(batch, length): the tokens as the model reads them."""

    hidden: Tensor
    """bool (batch, length): the tokens to predict."""


def can_hide(ids: Tensor, real: Tensor, mask_id: int) -> Tensor:
    """bool (batch, length): every token but the first, which begins the text, the end, padding, and blanks."""
    possible = real & (ids != EOS) & (ids != mask_id)
    possible[:, 0] = False
    return possible


def mask_at_random(
    ids: Tensor, real: Tensor, *, share: float, mask_id: int, generator: torch.Generator | None
) -> Masked:
    """Hides each token with probability `share`.

    80 % of the hidden tokens become the mask, 10 % a random token and 10 % stay: the model cannot rely on the mask, and
    keeps a good state for every token.

    Reference:
        Devlin et al. (2019), arXiv:1810.04805, section 3.1 and appendix A.1.
    """
    hidden = can_hide(ids, real, mask_id) & (torch.rand(ids.shape, generator=generator) < share)
    return disguise(
        ids, hidden, mask_id=mask_id, others=(len(NAMES), max(mask_id, len(NAMES) + 1)), generator=generator
    )


def mask_some(
    ids: Tensor,
    possible: Tensor,
    *,
    share: float,
    most: int,
    mask_id: int,
    others: tuple[int, int],
    generator: torch.Generator | None,
) -> Masked:
    """Hides a fixed share of each row: the nearest whole number, at least one and at most `most`, as BERT does.

    Args:
        ids: (batch, length).
        possible: bool (batch, length), the tokens that may be hidden; a row without any stays as it is.
        share: of the tokens that may be hidden.
        most: hidden tokens of a row.
        mask_id, others, generator: as for `disguise`.
    """
    wanted = (share * possible.sum(1)).round().clamp(1, most)
    drawn = torch.rand(ids.shape, generator=generator).masked_fill(~possible, 2.0)
    rank = drawn.argsort(1).argsort(1)
    hidden = possible & (rank < wanted.unsqueeze(1))
    return disguise(ids, hidden, mask_id=mask_id, others=others, generator=generator)


def disguise(
    ids: Tensor, hidden: Tensor, *, mask_id: int, others: tuple[int, int], generator: torch.Generator | None
) -> Masked:
    """80 % of the hidden tokens become the mask, 10 % a random token and 10 % stay.

    Args:
        ids: (batch, length).
        hidden: bool (batch, length).
        mask_id: that of the mask.
        others: the first id of random tokens, and the id after the last.
        generator: for everything random.
    """
    kind = torch.rand(ids.shape, generator=generator)
    random = torch.randint(*others, ids.shape, generator=generator)
    given = torch.where(hidden & (kind < 0.8), mask_id, ids)
    given = torch.where(hidden & (kind >= 0.8) & (kind < 0.9), random, given)
    return Masked(given, hidden)


def mask_every(ids: Tensor, real: Tensor, *, every: int, first: int | Tensor, mask_id: int) -> Masked:
    """Masks one token in every `every`, beginning with the `first` of each text, counted from 1.

    With `first` from 1 to `every`, each token is hidden exactly once.
    """
    places = torch.arange(ids.shape[1], device=ids.device)
    hidden = can_hide(ids, real, mask_id) & ((places - first) % every == 0)
    return Masked(torch.where(hidden, mask_id, ids), hidden)
