"""Attention drawn with characters, for a terminal."""

import shutil
import unicodedata
from collections.abc import Sequence

from torch import Tensor

SHADES = " ░▒▓█"
END = "</s>"


def draw_attention(weights: Tensor, source: Sequence[str], target: Sequence[str], *, width: int | None = None) -> str:
    """A line for each target piece, a column for each source piece, darker where the weight is greater.

    Source pieces of one character stand above their columns, longer ones are written downwards. What is wider than
    the terminal is continued below.

    Args:
        weights: (target, source).
        source: a name for each column.
        target: a name for each line.
        width: in characters; the terminal's if left out.
    """
    if tuple(weights.shape) != (len(target), len(source)):
        raise ValueError(
            f"weights must be (target, source) = ({len(target)}, {len(source)}), got {tuple(weights.shape)}."
        )
    names = [visible(piece) for piece in source]
    labels = [visible(piece) for piece in target]
    margin = max(map(_cells, labels), default=0)
    cell = max((_cells(character) for name in names for character in name), default=1)
    room = max(((width or shutil.get_terminal_size().columns) - margin - 1) // cell, 1)
    levels = (weights.clamp(0, 1) * (len(SHADES) - 1)).round().int().tolist()
    blocks = []
    for start in range(0, len(names), room):
        shown = names[start : start + room]
        height = max(map(len, shown))
        lines = []
        for row in range(height):
            letters = (name.rjust(height)[row] if len(name) < height else name[row] for name in shown)
            lines.append(" " * (margin + 1) + "".join(_pad(letter, cell) for letter in letters))
        for label, row_levels in zip(labels, levels, strict=True):
            shades = "".join(SHADES[level] * cell for level in row_levels[start : start + room])
            lines.append(" " * (margin - _cells(label)) + label + " " + shades)
        blocks.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(blocks)


def visible(piece: str) -> str:
    """Spaces shown, the end as one sign; marks that would join their neighbour left out."""
    if piece == END:
        return "∎"
    shown = "".join("␣" if c.isspace() else c for c in unicodedata.normalize("NFC", piece))
    return "".join(c for c in shown if not unicodedata.combining(c) and unicodedata.category(c)[0] != "C") or "·"


def printable(text: str) -> str:
    """Control characters shown by their signs, so that no text can give orders to a terminal."""
    return "".join(_sign(c) if unicodedata.category(c) == "Cc" else c for c in text)


def _sign(control: str) -> str:
    code = ord(control)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\x{code:02x}"


def _cells(text: str) -> int:
    """How many columns of a terminal a text fills."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pad(character: str, cell: int) -> str:
    return character + " " * (cell - _cells(character))
