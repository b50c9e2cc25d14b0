"""Texts among the options of a search, as ids of the vocabulary that it writes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saccade.data.special import UNK
from saccade.data.tokenisers import Tokeniser


def as_ids(options: Mapping[str, Any], tokeniser: Tokeniser) -> dict[str, Any]:
    """The options with ids in place of texts.

    Args:
        options: of them these may be texts, or ids: `prefix`, what predictions begin with, one for all or a list with
            one for each input; `forbidden`, a list of what they never contain; `forced`, from places, counted from 0,
            to the piece that stands there.
        tokeniser: of the targets.
    """
    found = dict(options)
    if found.get("prefix"):
        prefix = found["prefix"]
        several = not isinstance(prefix, str) and not isinstance(prefix[0], int)
        found["prefix"] = (
            [_ids("prefix", text, tokeniser) for text in prefix] if several else _ids("prefix", prefix, tokeniser)
        )
    if found.get("forbidden"):
        if isinstance(found["forbidden"], str):
            raise ValueError(f"forbidden is a list: write [{found['forbidden']!r}].")
        forbidden = [[token] if isinstance(token, int) else token for token in found["forbidden"]]
        sequences = [_ids("forbidden", token, tokeniser) for token in forbidden]
        found["forbidden"] = [sequence[0] if len(sequence) == 1 else sequence for sequence in sequences]
    if found.get("forced"):
        found["forced"] = {
            place: token if isinstance(token, int) else _one(token, tokeniser)
            for place, token in found["forced"].items()
        }
    return found


def _ids(option: str, given: str | Sequence[int], tokeniser: Tokeniser) -> list[int]:
    if not isinstance(given, str):
        tokeniser.pieces(given)  # which refuses ids that there are not
        return list(given)
    ids = tokeniser.encode(given)
    if UNK in ids:
        raise ValueError(f"{option}: the model's vocabulary cannot write {given!r}.")
    return ids


def _one(text: str, tokeniser: Tokeniser) -> int:
    ids = _ids("forced", text, tokeniser)
    if len(ids) != 1:
        pieces = ", ".join(map(repr, tokeniser.pieces(ids)))
        raise ValueError(f"forced: {text!r} is not one piece of the model's vocabulary but {pieces or 'none'}.")
    return ids[0]
