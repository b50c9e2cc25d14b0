"""Pictures of attention and of figures."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import IO, Any

from torch import Tensor

from saccade.interpretation.text import visible


def plot_attention(
    drawings: Sequence[tuple[Tensor, Sequence[str], Sequence[str]]],
    path: str | os.PathLike[str] | IO[bytes],
    *,
    suffix: str | None = None,
) -> None:
    """Writes a picture of attention matrices side by side: lines are target pieces, columns source pieces.

    Args:
        drawings: weights (target, source), the source pieces and the target pieces of each.
        path: the file; its suffix (.png, .svg, .pdf) is its format.
        suffix: the format of a file without a name.
    """
    shapes = [tuple(weights.shape) for weights, _, _ in drawings]
    if not drawings:
        raise ValueError("There is nothing to draw.")
    widths, height = [max(columns, 4) for _, columns in shapes], max(rows for rows, _ in shapes)
    figure, axes = _subplots(widths, (0.24 * sum(widths) + 0.9 * len(widths), 0.24 * height + 1.2))
    for axis, (weights, source, target) in zip(axes, drawings, strict=True):
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


def _subplots(widths: Sequence[int], size: tuple[float, float]) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure  # without pyplot: no window, no state
    except ModuleNotFoundError:
        raise ModuleNotFoundError('Pictures need matplotlib: pip install "saccade[plots]"', name="matplotlib") from None
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(widths), squeeze=False, width_ratios=list(widths))
    return figure, list(axes[0])


def _save(figure: Any, path: str | os.PathLike[str] | IO[bytes], suffix: str | None = None) -> None:
    with warnings.catch_warnings():  # a script that the font lacks is drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(path, dpi=150, format=suffix)
