"""Attention drawn with characters, for a terminal: as shades, over time, and as bars."""

import math
import shutil
import unicodedata
from collections.abc import Sequence

import torch
from torch import Tensor

SHADES = " ░▒▓█"
EIGHTHS = " ▏▎▍▌▋▊▉"
END = "</s>"
LONGEST_NAME = 32


def draw_attention(weights: Tensor, source: Sequence[str], target: Sequence[str], *, width: int | None = None) -> str:
    """Draws a line for each target piece and a column for each source piece, darker where the weight is larger.

    Single characters stand above their columns, longer names run downwards. Maps wider than the terminal continue
    below.

    Args:
        weights: (target, source).
        source: a name for each column.
        target: a name for each line.
        width: in characters; by default that of the terminal.
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


def draw_over_time(weights: Tensor, seconds: float, target: Sequence[str], *, width: int | None = None) -> str:
    """Draws a line for each target piece under a time axis; frames that share a column add up.

    Args:
        weights: (target, frames).
        seconds: how long all frames last together.
        target: a name for each line.
        width: in characters; by default that of the terminal.
    """
    if weights.ndim != 2 or len(weights) != len(target):
        raise ValueError(f"weights must be (target, frames) = ({len(target)}, frames), got {tuple(weights.shape)}.")
    labels = [visible(piece) for piece in target]
    margin = max(map(_cells, labels), default=0)
    frames = weights.shape[1]
    columns = min(max((width or shutil.get_terminal_size().columns) - margin - 1, 1), frames)
    place = torch.arange(frames) * columns // frames
    pooled = torch.zeros(len(target), columns).index_add_(1, place, weights.detach().float().cpu())
    # Weights spread over many frames: as on the page, shades follow the square root.
    levels = (pooled.clamp(0, 1).sqrt() * (len(SHADES) - 1)).round().int().tolist()
    lines = [" " * (margin + 1) + _ruler(seconds, columns)]
    for label, row in zip(labels, levels, strict=True):
        lines.append(" " * (margin - _cells(label)) + label + " " + "".join(SHADES[level] for level in row))
    return "\n".join(line.rstrip() for line in lines)


def draw_bars(weights: Sequence[float], names: Sequence[str], *, most: int = 20, width: int | None = None) -> str:
    """Draws the largest weights as bars, largest first, and says how much is left out.

    The longest bar is the largest weight; the figures are absolute.

    Args:
        weights: one per name.
        names: shown in front of the bars.
        most: how many bars to draw.
        width: in characters; by default that of the terminal.
    """
    if len(weights) != len(names):
        raise ValueError(f"There are {len(weights)} weights but {len(names)} names: give one name per weight.")
    order = sorted(range(len(weights)), key=lambda place: -weights[place])
    shown, rest = order[:most], order[most:]
    labels = [_short(visible_name(names[place])) for place in shown]
    margin = max(map(_cells, labels), default=0)
    room = max(min((width or shutil.get_terminal_size().columns) - margin - 9, 50), 4)
    largest = max((weights[place] for place in shown), default=0.0) or 1.0
    lines = []
    for label, place in zip(labels, shown, strict=True):
        eighths = round(8 * room * weights[place] / largest)
        bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
        lines.append(f"{label}{' ' * (margin - _cells(label))}  {weights[place]:.3f} {bar}".rstrip())
    if rest:
        lines.append(f"… and {len(rest):,} more, {sum(weights[place] for place in rest):.3f} together")
    return "\n".join(lines)


def visible_name(name: str) -> str:
    """A name of several words: control characters as signs, spaces as they are."""
    return printable(name.strip()) or visible(name)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _ruler(seconds: float, columns: int) -> str:
    """Times above the columns where they begin, as many as have room."""
    steps = (step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5))
    step = next((step for step in steps if step / seconds * columns >= 8), seconds)
    digits = max(0, -math.floor(math.log10(step)))
    line = ""
    for number in range(math.floor(seconds / step) + 1):
        column = round(number * step / seconds * columns)
        mark = f"{number * step:.{digits}f}" + (" s" if number == 0 else "")
        if column + len(mark) <= columns:
            line = line.ljust(column) + mark
    return line or f"0 to {seconds:.3g} s"


def visible(piece: str) -> str:
    """Shows spaces as signs and the end of a sentence as one sign, and drops marks that would join a neighbour."""
    if piece == END:
        return "∎"
    shown = "".join("␣" if c.isspace() else c for c in unicodedata.normalize("NFC", piece))
    return "".join(c for c in shown if not unicodedata.combining(c) and unicodedata.category(c)[0] != "C") or "·"


def printable(text: str) -> str:
    """Replaces control characters by their signs, so that no text can control the terminal."""
    return "".join(_sign(c) if unicodedata.category(c) == "Cc" else c for c in text)


def _sign(control: str) -> str:
    code = ord(control)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\x{code:02x}"


def _cells(text: str) -> int:
    """How many terminal columns a text fills."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pad(character: str, cell: int) -> str:
    return character + " " * (cell - _cells(character))
