"""Pictures of attention and of figures."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import IO, Any

from torch import Tensor

from saccade.interpretation.text import visible

IN_A_LINE = 4
"""How many attention matrices stand side by side."""


def plot_attention(
    drawings: Sequence[tuple[Tensor, Sequence[str], Sequence[str]]],
    path: str | os.PathLike[str] | IO[bytes],
    *,
    suffix: str | None = None,
    names: Sequence[str] = (),
) -> None:
    """Writes a picture of attention matrices, four in a line: lines are target pieces, columns source pieces.

    Args:
        drawings: weights (target, source), the source pieces and the target pieces of each.
        path: the file; its suffix (.png, .svg, .pdf) is its format.
        suffix: the format of a file without a name.
        names: of the matrices, written below them.
    """
    if not drawings:
        raise ValueError("There is nothing to draw.")
    lines = [[tuple(w.shape) for w, _, _ in drawings[n : n + IN_A_LINE]] for n in range(0, len(drawings), IN_A_LINE)]
    widths = [max(line[n][1] if n < len(line) else 0 for line in lines) for n in range(len(lines[0]))]
    widths = [max(width, 4) for width in widths]
    heights = [max(rows for rows, _ in line) for line in lines]
    size = 0.24 * sum(widths) + 0.9 * len(widths), 0.24 * sum(heights) + 1.2 * len(heights)
    figure, axes = _subplots(widths, size, heights)
    for axis in axes[len(drawings) :]:
        axis.set_axis_off()
    for axis, name in zip(axes, names, strict=False):
        axis.set_xlabel(name)
    for axis, (weights, source, target) in zip(axes, drawings, strict=False):
        axis.imshow(weights.float().numpy(), cmap="Greys", vmin=0.0, vmax=1.0, aspect="equal")
        names = [visible(piece) for piece in source]
        axis.set_xticks(range(len(source)), names, rotation=90 if max(map(len, names)) > 1 else 0)
        axis.set_yticks(range(len(target)), [visible(piece) for piece in target])
        axis.xaxis.tick_top()
        axis.tick_params(length=0)
    _save(figure, path, suffix)


def plot_lines(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    path: str | os.PathLike[str],
    *,
    x: str,
    y: str,
) -> None:
    """Writes a picture of figures as lines: by source length (Bahdanau's figure 2), by beam size, over time.

    Args:
        lines: places and heights of each line's points, under the line's name.
        path: the file; its suffix is its format.
        x: what goes to the right.
        y: what goes up.
    """
    figure, (axis,) = _subplots([1], (5.5, 3.5))
    for name, (places, heights) in lines.items():
        axis.plot(places, heights, marker="o", label=name)
    axis.set(xlabel=x, ylabel=y)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    if len(lines) > 1:
        axis.legend(frameon=False)
    _save(figure, path)


def _subplots(widths: Sequence[int], size: tuple[float, float], heights: Sequence[int] = (1,)) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure  # without pyplot: no window, no state
    except ModuleNotFoundError:
        raise ModuleNotFoundError('Pictures need matplotlib: pip install "saccade[plots]"', name="matplotlib") from None
    figure = Figure(figsize=size, layout="constrained")
    ratios = {"width_ratios": list(widths), "height_ratios": list(heights)}
    axes = figure.subplots(len(heights), len(widths), squeeze=False, gridspec_kw=ratios)
    return figure, list(axes.flat)


def _save(figure: Any, path: str | os.PathLike[str] | IO[bytes], suffix: str | None = None) -> None:
    with warnings.catch_warnings():  # a script that the font lacks is drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(path, dpi=150, format=suffix)
