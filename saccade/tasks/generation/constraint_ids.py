"""Texts among the options of a search, as ids of the vocabulary it writes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from saccade.data.special import UNK
from saccade.data.tokenisers import Tokeniser
from saccade.tasks.generation.options import SearchOptions


def as_ids(options: SearchOptions, tokeniser: Tokeniser) -> SearchOptions:
    """The options with ids in place of texts: `prefix`, `forbidden` and `forced` may contain either."""
    changed: dict[str, Any] = {}
    if options.prefix is not None:
        prefix = options.prefix
        several = not isinstance(prefix, str) and not all(isinstance(token, int) for token in prefix)
        changed["prefix"] = (
            [_ids("prefix", text, tokeniser) for text in prefix] if several else _ids("prefix", prefix, tokeniser)
        )
    if options.forbidden:
        forbidden = [[token] if isinstance(token, int) else token for token in options.forbidden]
        sequences = [_ids("forbidden", token, tokeniser) for token in forbidden]
        changed["forbidden"] = [sequence[0] if len(sequence) == 1 else sequence for sequence in sequences]
    if options.forced:
        changed["forced"] = {
            place: token if isinstance(token, int) else _one(token, tokeniser)
            for place, token in options.forced.items()
        }
    return replace(options, **changed) if changed else options


def _ids(option: str, given: str | Sequence[int], tokeniser: Tokeniser) -> list[int]:
    if not isinstance(given, str):
        tokeniser.pieces(given)  # refuses ids that do not exist
        return list(given)
    ids = tokeniser.encode(given)
    if UNK in ids:
        raise ValueError(f"{option}: the model's vocabulary cannot write {given!r:.60}.")
    return ids


def _one(text: str, tokeniser: Tokeniser) -> int:
    ids = _ids("forced", text, tokeniser)
    if len(ids) != 1:
        pieces = ", ".join(map(repr, tokeniser.pieces(ids)))
        raise ValueError(f"forced: {text!r:.60} is not one piece of the model's vocabulary but {pieces or 'none'}.")
    return ids[0]
