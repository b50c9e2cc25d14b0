"""Tasks with several inputs: vocabularies that they share, and which of them an attention is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from torch import Tensor
from torch.nn import functional as F

from saccade.fields import Field, Text


def shared_vocabularies(inputs: Mapping[str, Field]) -> dict[str, str]:
    """The texts that share an earlier text's vocabulary: their roles, mapped to the role of the first such text."""
    owners: list[tuple[str, Text]] = []
    shared: dict[str, str] = {}
    for role, field in inputs.items():
        if isinstance(field, Text):
            alike = next((owner for owner, text in owners if _alike(text, field)), None)
            if alike is None:
                owners.append((role, field))
            else:
                shared[role] = alike
    return shared


def _alike(text: Text, other: Text) -> bool:
    one, two = text.tokeniser, other.tokeniser
    return type(one) is type(two) and one.options() == two.options()


def tell_apart(batch: dict[str, Tensor], roles: Iterable[str]) -> dict[str, Tensor]:
    """A batch padded until the numbers of positions of any two inputs differ by two or more, and none has one.

    The shape of an attention then says from which input to which it is, even if each position reads only those before
    it, of which there is one less.
    """
    padded, taken = dict(batch), {1}
    for role in roles:
        mask = batch.get(f"{role}_mask")
        if mask is not None:
            length = next(length for length in count(mask.shape[1]) if length not in taken)
            taken |= {length - 1, length, length + 1}
            more = length - mask.shape[1]
            padded[f"{role}_mask"] = F.pad(mask, (0, more))
            padded[role] = F.pad(batch[role], (0, 0) * (batch[role].dim() - 2) + (0, more))  # ids of padding are 0
    return padded
