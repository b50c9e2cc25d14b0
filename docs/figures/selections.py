"""Plots the weights that each selection computes from the same scores, to docs/assets/selections.svg.

Every registered selection gets a panel, unless it needs arguments that this script does not know, or as many queries
as keys.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from torch import nn

from saccade.registry import constructor_parameters
from saccade.selections import selections

# A plateau of three, a clear best with a neighbour, and a tail below zero.
SCORES = [-0.6, 0.2, 1.3, 1.4, 1.3, 0.3, -1.2, 0.5, 1.9, 1.1, -0.3, -0.9]

# Five queries with the same scores; the fifth is plotted, after local, windowed and monotonic selections have moved.
QUERIES = 5

# Grouped by family; selections that are not listed here come last.
ORDER = (
    "softmax",
    "hard",
    "gumbel_softmax",
    "top_k",
    "sparsemax",
    "entmax15",
    "entmax",
    "fusedmax",
    "relu_normalized",
    "normalized_sigmoid",
    "sigmoid",
    "binary_concrete",
    "linear_chain",
    "local_m",
    "local_p",
    "windowed",
    "monotonic",
    "mocha",
    "ntm_addressing",
    "continuous_softmax",
    "continuous_sparsemax",
)

# For defaults that suit more than twelve keys, or that make hard decisions where the soft form shows more.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "fusedmax": {"strength": 0.3},
    "local_m": {"half_width": 2},
    "local_p": {"half_width": 3},
    "mocha": {"width": 3, "hard_at_eval": False},
    "monotonic": {"hard_at_eval": False},
    "top_k": {"k": 3},
    "windowed": {"half_width": 2},
}
COLUMNS = 4

# Okabe and Ito's colours, distinguishable with any colour vision; zeros also differ in shape.
SCORE_COLOR, WEIGHT_COLOR, ZERO_COLOR = "#777777", "#0072B2", "#D55E00"


@dataclass(frozen=True)
class Panel:
    """The weights of one selection."""

    name: str
    note: str
    weights: list[float]


def panels() -> list[Panel]:
    """The fifth query of every selection that can be built."""
    query = torch.zeros(QUERIES, 1)
    names = selections.names()
    shown = []
    for name in [n for n in ORDER if n in names] + [n for n in names if n not in ORDER]:
        arguments = ARGUMENTS.get(name, {})
        parameters = constructor_parameters(selections.get(name))
        if "query_dim" in parameters and parameters["query_dim"].default is parameters["query_dim"].empty:
            arguments = {"query_dim": query.shape[-1], **arguments}
        try:
            selection = _untrained(selections.create(name, **arguments))
            with torch.no_grad():
                weights = selection(torch.tensor(SCORES).expand(QUERIES, -1), query=query).marginals[-1]
        except (TypeError, ValueError):  # other arguments, or as many queries as keys
            continue
        told = {key: value for key, value in ARGUMENTS.get(name, {}).items() if not isinstance(value, bool)}
        shown.append(Panel(name, ", ".join(f"{key}={value}" for key, value in told.items()), weights.tolist()))
    return shown


def _untrained(selection: nn.Module) -> nn.Module:
    """The selection with its projections at zero: gates half open, positions in the middle."""
    for module in selection.modules():
        if isinstance(module, nn.Linear):
            for parameter in module.parameters():
                nn.init.zeros_(parameter)
    return selection.eval()


def draw(path: Path) -> None:
    """Plots small multiples: the scores first, then a panel for each selection."""
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",  # text stays text: small, sharp and searchable
            "svg.hashsalt": "saccade",  # the same picture is the same file
            "font.family": "sans-serif",
            "font.size": 8,
        }
    )
    shown = panels()
    rows = -(-(len(shown) + 1) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(9.6, 1.3 * rows + 0.3), squeeze=False)
    figure.subplots_adjust(left=0.01, right=0.99, top=1 - 0.3 / (1.3 * rows), bottom=0.4 / (1.3 * rows), hspace=0.42)
    axes = grid.flatten()
    for axis in axes:
        axis.set_axis_off()
    _bars(axes[0], "the scores", "", SCORES, SCORE_COLOR)
    highest = max(max(panel.weights) for panel in shown if sum(panel.weights) < 1.01)
    for axis, panel in zip(axes[1:], shown, strict=False):
        _bars(axis, panel.name, panel.note, panel.weights, WEIGHT_COLOR)
        zeros = [j for j, weight in enumerate(panel.weights) if weight == 0]
        axis.plot(zeros, [0.0] * len(zeros), "x", color=ZERO_COLOR, markersize=3.5, markeredgewidth=1.1, clip_on=False)
        axis.set_ylim(0, 1.2 * max(highest, *panel.weights))
    note = "One bar a key; the number is the largest weight; a cross is exactly zero."
    moved = "Of selections that move with the query: the fifth of five."
    figure.text(0.01, 0.008, f"{note} {moved}", fontsize=8, color="#444444")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, facecolor="white")
    plt.close(figure)


def _bars(axis: Axes, name: str, note: str, heights: list[float], color: str) -> None:
    axis.bar(range(len(heights)), heights, color=color, width=0.78)
    axis.axhline(0, color="#222222", linewidth=0.6, clip_on=False)
    axis.set_xlim(-0.7, len(heights) - 0.3)
    axis.set_title(name, loc="left", fontsize=9.5, fontfamily="monospace", color="#111111", pad=5)
    axis.set_title(note, loc="right", fontsize=7.5, color="#555555", pad=5)
    best = max(range(len(heights)), key=heights.__getitem__)
    axis.annotate(
        f"{heights[best]:.2g}", (best, heights[best]), (0, 1.5), textcoords="offset points", ha="center", fontsize=7.5
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parent.parent / "assets" / "selections.svg"
    parser.add_argument("--output", type=Path, default=default, help="where to write; the suffix is the format")
    draw(parser.parse_args().output)
