"""Characters and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from saccade.data.special import NAMES
from saccade.data.tokenisers.base import tokenisers
from saccade.data.tokenisers.listed import CharTokeniser

TAGS = re.compile(r"<([^<>\s]+)>")


@tokenisers.register("tagged")
class TaggedTokeniser(CharTokeniser):
    """Every character is a piece, except for tags in angle brackets: `run <V;PST>` is r, u, n, <V>, <PST>.

    Semicolons separate tags. The space before them is not a piece.
    """

    kind = "tagged"

    def split(self, text: str) -> list[str]:
        pieces: list[str] = []
        for word in text.split(" ") if text else []:
            found = TAGS.fullmatch(word)
            tags = [f"<{tag}>" for tag in found[1].split(";")] if found else []
            if not all(map(is_tag, tags)):  # "<s>" in a text is text
                tags = []
            if pieces and (not tags or is_tag(pieces[-1])):
                pieces.append(" ")
            pieces += tags or word
        return pieces

    def join(self, pieces: Iterable[str]) -> str:
        text, before = "", ""
        for piece in pieces:
            if not is_tag(piece):
                text += piece
            elif is_tag(before):
                text = f"{text[:-1]};{piece[1:]}"
            else:
                text += f" {piece}" if before not in ("", " ") else piece
            before = piece
        return text

    def touches(self, before: str, piece: str) -> bool:
        return is_tag(before) == is_tag(piece)


def is_tag(piece: str) -> bool:
    """Whether a piece is a tag rather than a character."""
    return len(piece) > 1 and piece not in NAMES
