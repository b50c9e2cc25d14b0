"""Pictures of attention, and of figures as lines."""

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

from torch import Tensor

from saccade.interpretation.text import visible, visible_name

IN_A_LINE = 4
"""How many drawings are placed side by side."""
MOST_BARS = 24
SPECTROGRAM, TIMELINE = 7, 36
"""Height of a spectrogram and width of a drawing over time, in cells of a map."""


class Heat(NamedTuple):
    """Weights (target, source), with a name for each column and line."""

    weights: Tensor
    source: Sequence[str]
    target: Sequence[str]


class OverTime(NamedTuple):
    """Weights (target, frames) below the spectrogram of a recording."""

    weights: Tensor
    seconds: float
    target: Sequence[str]
    png: bytes


class Bars(NamedTuple):
    """The weights of a single row."""

    values: Sequence[float]
    names: Sequence[str]
    title: str


Drawing = Heat | OverTime | Bars


def plot_attention(
    drawings: Sequence[Drawing | tuple[Tensor, Sequence[str], Sequence[str]]],
    path: str | os.PathLike[str] | IO[bytes],
    *,
    suffix: str | None = None,
    names: Sequence[str] = (),
) -> None:
    """Writes a picture of attention, four drawings in a line.

    Args:
        drawings: maps, maps over time, or bars; a plain tuple is a map of weights (target, source), the source pieces
            and the target pieces.
        path: the file; its suffix (.png, .svg, .pdf) decides the format.
        suffix: the format of a file without a name.
        names: of the drawings, written below them.
    """
    if not drawings:
        raise ValueError("There is nothing to draw.")
    shown = [each if isinstance(each, OverTime | Bars) else Heat(*each) for each in drawings]
    cells = [_cells(each) for each in shown]
    lines = [cells[n : n + IN_A_LINE] for n in range(0, len(cells), IN_A_LINE)]
    widths = [max(line[n][1] if n < len(line) else 0 for line in lines) for n in range(len(lines[0]))]
    widths = [max(width, 4) for width in widths]
    heights = [max(rows for rows, _ in line) for line in lines]
    size = 0.24 * sum(widths) + 0.9 * len(widths), 0.24 * sum(heights) + 1.2 * len(heights)
    figure, axes = _subplots(widths, size, heights)
    for axis in axes[len(drawings) :]:
        axis.set_axis_off()
    for axis, name in zip(axes, names, strict=False):
        axis.set_xlabel(name)
    for axis, drawing in zip(axes, shown, strict=False):
        _draw(axis, drawing)
    _save(figure, path, suffix)


def _cells(drawing: Drawing) -> tuple[int, int]:
    """Height and width, in cells of a map."""
    if isinstance(drawing, Bars):
        return max(min(len(drawing.values), MOST_BARS), 2), 16
    if isinstance(drawing, OverTime):
        return len(drawing.target) + SPECTROGRAM, TIMELINE
    return len(drawing.target), len(drawing.source)


def _draw(axis: Any, drawing: Drawing) -> None:
    if isinstance(drawing, Bars):
        _draw_bars(axis, drawing)
        return
    target = [visible(piece) for piece in drawing.target]
    if isinstance(drawing, OverTime):
        rows = len(target)
        above = axis.inset_axes((0, rows / (rows + SPECTROGRAM), 1, SPECTROGRAM / (rows + SPECTROGRAM)))
        below = axis.inset_axes((0, 0, 1, rows / (rows + SPECTROGRAM)))
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        above.imshow(_pixels(drawing.png), cmap="gray", aspect="auto", extent=(0, drawing.seconds, 0, 1))
        above.xaxis.tick_top()
        above.set(yticks=[], title="seconds")
        extent = (0, drawing.seconds, rows - 0.5, -0.5)
        shades = drawing.weights.float().clamp(0, 1).sqrt().numpy()  # as on the page: weights spread over many frames
        below.imshow(shades, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto", extent=extent)
        below.set_yticks(range(rows), target)
        below.set_xticks([])
        return
    axis.imshow(drawing.weights.float().numpy(), cmap="Greys", vmin=0.0, vmax=1.0, aspect="equal")
    source = [visible(piece) for piece in drawing.source]
    axis.set_xticks(range(len(source)), source, rotation=90 if max(map(len, source)) > 1 else 0)
    axis.set_yticks(range(len(target)), target)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)


def _draw_bars(axis: Any, bars: Bars) -> None:
    order = sorted(range(len(bars.values)), key=lambda place: -bars.values[place])[:MOST_BARS]
    axis.barh(range(len(order)), [bars.values[place] for place in order], color="0.35")
    axis.set_yticks(range(len(order)), [visible_name(bars.names[place]) for place in order])
    axis.invert_yaxis()
    left = len(bars.values) - len(order)
    axis.set_title(
        visible_name(bars.title) + (f" ({left:,} smaller weights not shown)" if left else ""), fontsize="small"
    )
    axis.spines[["top", "right"]].set_visible(False)


def _pixels(png: bytes) -> Any:
    from matplotlib.image import imread

    return imread(io.BytesIO(png), format="png")


def plot_lines(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    path: str | os.PathLike[str],
    *,
    x: str,
    y: str,
) -> None:
    """Writes a line chart: by source length (Bahdanau's figure 2), by beam size, over time.

    Args:
        lines: x and y values of each line's points, by the line's name.
        path: the file; its suffix decides the format.
        x: the label of the horizontal axis.
        y: the label of the vertical axis.
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


def plot_reliability(
    bins: Sequence[tuple[float, float, int, float, float]], path: str | os.PathLike[str] | IO[bytes]
) -> None:
    """Writes a reliability diagram: the accuracy of answers by their confidence, and how many there are.

    Reference:
        Guo et al. (2017), arXiv:1706.04599, figure 1.

    Args:
        bins: where each begins and ends, the number of its answers, their mean confidence and their accuracy.
        path: the file; its suffix decides the format.
    """
    figure, (above, below) = _subplots([1], (4.8, 5.6), [3, 1])
    filled = [each for each in bins if each[2]]
    centres, widths = [(low + high) / 2 for low, high, *_ in filled], [high - low for low, high, *_ in filled]
    above.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="perfect")
    above.bar(centres, [accuracy for *_, accuracy in filled], widths, color="0.75", edgecolor="white", label="accuracy")
    above.plot(
        [c for *_, c, _ in filled],
        [accuracy for *_, accuracy in filled],
        "o",
        color="0.2",
        label="at its mean confidence",
        clip_on=False,
    )
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
    above.legend(frameon=False, loc="upper left", fontsize="small")
    counts = [count for _, _, count, _, _ in filled]
    below.bar(centres, counts, widths, color="0.5", edgecolor="white")
    for centre, count in zip(centres, counts, strict=True):
        below.annotate(f"{count:,}", (centre, count), ha="center", va="bottom", fontsize="x-small")
    below.margins(y=0.2)
    below.set(xlim=(0, 1), xlabel="confidence", ylabel="answers")
    for axis in (above, below):
        axis.spines[["top", "right"]].set_visible(False)
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
    with warnings.catch_warnings():  # scripts that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(path, dpi=150, format=suffix)
