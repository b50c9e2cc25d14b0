"""Token numbers as the pieces of a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from typing import Any

from saccade.data.tokenisers.byte_level import as_bytes
from saccade.interpretation.explorer import TextAxis

SPACE = "\u2581"
"""The mark of a space before a piece."""
ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""A token for one byte, as SentencePiece writes it."""
MOST_BYTES = 8
"""No letter is divided into so many tokens."""
UNKNOWN = "\u2026"


def token_axis(ids: Sequence[int | None], tokenizer: Any = None) -> TextAxis:
    """The pieces of these tokens; the numbers themselves without a tokeniser. None stands for an unknown token."""
    if tokenizer is None:
        return TextAxis(pieces=[UNKNOWN if each is None else str(each) for each in ids])
    known = set(getattr(tokenizer, "all_special_ids", ()))
    special = [place for place, each in enumerate(ids) if each is None or each in known]
    pieces = _pieces(ids, tokenizer, set(special))
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


def _pieces(ids: Sequence[int | None], tokenizer: Any, special: Set[int]) -> list[str]:
    """Each token as text.

    Byte-level tokenisers may divide a letter: all of it counts for its first token, and the others are empty.
    """
    byte_level = _is_byte_level(tokenizer)
    added = _added(tokenizer)
    whole = special | {place for place, each in enumerate(ids) if each in added}
    found = [""] * len(ids)
    first, pending = 0, b""
    for place, number in enumerate(ids):
        if number is None or place in whole:
            found[place] = UNKNOWN if number is None else str(tokenizer.convert_ids_to_tokens(number))
        else:
            first = first if pending else place
            pending += _as_bytes(tokenizer.convert_ids_to_tokens(number), number, byte_level)
        last = place + 1 == len(ids) or ids[place + 1] is None or place + 1 in whole
        text = _decoded(pending, last or place - first >= MOST_BYTES)
        if text:
            found[first], pending = _marked(text), b""
    return found


def _is_byte_level(tokenizer: Any) -> bool:
    """Whether it writes a letter for each byte, as GPT-2 does."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    parts = [getattr(backend, name, None) for name in ("decoder", "pre_tokenizer")]
    return hasattr(tokenizer, "byte_decoder") or any("ByteLevel" in repr(part) for part in parts)


def _added(tokenizer: Any) -> Set[int]:
    """The tokens that were added to those that it has learnt, and stand for themselves."""
    return set(tokenizer.get_added_vocab().values()) if hasattr(tokenizer, "get_added_vocab") else set()


def _as_bytes(piece: str | bytes | None, number: int, byte_level: bool) -> bytes:
    if piece is None:
        return str(number).encode()
    if isinstance(piece, bytes):
        return piece
    one = ONE_BYTE.fullmatch(piece)
    if one:
        return bytes.fromhex(one[1])
    return as_bytes(piece) if byte_level else piece.encode()


def _decoded(text: bytes, whole: bool) -> str:
    """The text; nothing if it ends within a letter, unless this is the whole of it."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="backslashreplace") if whole else ""


def _marked(text: str) -> str:
    """The text with the mark of a space at its beginning, unless it is nothing but spaces."""
    bare = text.lstrip(f" {SPACE}")
    return SPACE * (len(text) - len(bare)) + bare if bare else text.replace(SPACE, " ")


def _words(pieces: Sequence[str], special: set[int]) -> list[list[int]] | None:
    """The pieces of each word, by the marks of the tokeniser; None if it makes none."""
    own = [piece for place, piece in enumerate(pieces) if place not in special]
    prefixed = any(piece.startswith(SPACE) for piece in own)
    continued = any(piece.startswith("##") for piece in own)
    if not prefixed and not continued:
        return None
    words: list[list[int]] = []
    open_word, before = False, ""
    for place, piece in enumerate(pieces):
        if place in special:
            open_word = False
            continue
        bare = piece.lstrip(SPACE).removeprefix("##")
        if bare.isspace():  # a piece of its own that is no word
            open_word = False
            continue
        begins = piece.startswith(SPACE) if prefixed else not piece.startswith("##")
        if not piece:  # the rest of a letter
            begins = False
        elif not begins and open_word:
            begins = _is_sign(bare) != _is_sign(before)
        before = bare or before
        if begins or not open_word:
            words.append([])
        words[-1].append(place)
        open_word = True
    return words or None


def _is_sign(text: str) -> bool:
    return bool(text) and all(unicodedata.category(letter)[0] in "PS" for letter in text)
