"""Token numbers as the pieces of a text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from saccade.interpretation.explorer import TextAxis

SPACES = "\u0120\u2581"
"""The marks with which subword tokenisers write a space before a piece."""
UNKNOWN = "\u2026"


def token_axis(ids: Sequence[int | None], tokenizer: Any = None) -> TextAxis:
    """The pieces of these tokens; the numbers themselves without a tokeniser. None stands for an unknown token."""
    if tokenizer is None:
        return TextAxis(pieces=[UNKNOWN if each is None else str(each) for each in ids])
    pieces = [UNKNOWN if each is None else _piece(tokenizer, each) for each in ids]
    known = set(getattr(tokenizer, "all_special_ids", ()))
    special = [place for place, each in enumerate(ids) if each is None or each in known]
    return TextAxis(pieces=pieces, words=_words(pieces, set(special)), special=special)


def text_tokenizer(tokenizer: Any) -> Any:
    """The tokeniser itself, or that of a processor."""
    found = getattr(tokenizer, "tokenizer", tokenizer)
    if found is not None and not hasattr(found, "convert_ids_to_tokens"):
        raise TypeError(
            f"tokenizer must be a Hugging Face tokeniser or processor, got {type(tokenizer).__name__}: for others, "
            "give the names of queries= and keys=."
        )
    return found


def _piece(tokenizer: Any, number: int) -> str:
    """The piece as text: byte-level tokenisers write letters beyond ASCII as strange ones."""
    piece = tokenizer.convert_ids_to_tokens(number)
    if piece is None:
        return str(number)
    if isinstance(piece, bytes):
        piece = piece.decode("utf-8", "replace")
    if piece.lstrip(SPACES).isascii():
        return str(piece)
    text = tokenizer.convert_tokens_to_string([piece])
    if "\ufffd" in text or not text:
        return str(piece)
    if piece[0] in SPACES:
        return str(piece[0] + text.lstrip(" "))
    return str(text)


def _words(pieces: Sequence[str], special: set[int]) -> list[list[int]] | None:
    """The pieces of each word, by the marks of the tokeniser; None if it makes none."""
    own = [piece for place, piece in enumerate(pieces) if place not in special]
    prefixed = any(piece[:1] and piece[0] in SPACES for piece in own)
    continued = any(piece.startswith("##") for piece in own)
    if not prefixed and not continued:
        return None
    words: list[list[int]] = []
    open_word = False
    for place, piece in enumerate(pieces):
        if place in special:
            open_word = False
            continue
        bare = piece.lstrip(SPACES).removeprefix("##")
        if bare.isspace():  # a piece of its own that is no word
            open_word = False
            continue
        begins = piece[:1] in SPACES if prefixed else not piece.startswith("##")
        if not begins and open_word:
            begins = _is_sign(bare) != _is_sign(pieces[place - 1].lstrip(SPACES).removeprefix("##"))
        if begins or not open_word:
            words.append([])
        words[-1].append(place)
        open_word = True
    return words or None


def _is_sign(text: str) -> bool:
    return bool(text) and all(unicodedata.category(letter)[0] in "PS" for letter in text)
