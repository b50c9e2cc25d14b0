"""Items in every form that they can be shown in: a page, a terminal, pictures, data."""

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from saccade.interpretation.alignments import merge_words
from saccade.interpretation.explorer.axes import Axis, TextAxis
from saccade.interpretation.explorer.items import Item, Map
from saccade.interpretation.explorer.page import describe_axis, page
from saccade.interpretation.plots import plot_attention
from saccade.interpretation.text import draw_attention, printable

FORMATS = ("html", "text", "png", "svg", "json")


def render(
    items: Sequence[Item],
    format: str,
    *,
    title: str = "Attention",
    width: int | None = None,
    side_by_side: bool = False,
) -> bytes:
    """The items as a file: `html`, `text` (UTF-8), `png`, `svg` or `json`.

    Text and pictures show the mean of each map's heads, words where the axes have them; pages and JSON hold every head.

    Args:
        items: what to show.
        format: one of `FORMATS`.
        title: of the page.
        width: of the text, in characters; the terminal's if left out.
        side_by_side: whether the page opens with the first two items beside each other.
    """
    forms: dict[str, Callable[[], bytes]] = {
        "html": lambda: page(items, title=title, side_by_side=side_by_side),
        "text": lambda: _text(items, width).encode("utf-8", "replace"),
        "png": lambda: _picture(items, "png"),
        "svg": lambda: _picture(items, "svg"),
        "json": lambda: json.dumps(_data(items, title), ensure_ascii=False).encode("utf-8", "replace"),
    }
    if format not in forms:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    if not items:
        raise ValueError("There are no items to show.")
    return forms[format]()


def merged(each: Map) -> tuple[Tensor, list[str], list[str]]:
    """The mean of the heads in words, with the names of keys and queries.

    Shapes:
        -> weights (query words, key words).
    """
    queries, keys = _groups(each.queries), _groups(each.keys)
    weights = merge_words(each.weights.detach().float().cpu().mean(dim=0), keys, queries)
    return weights, _names(each.keys, keys), _names(each.queries, queries)


def _groups(axis: Axis) -> list[list[int]]:
    """Words, and the pieces that are in none."""
    words = axis.words if isinstance(axis, TextAxis) and axis.words is not None else []
    held = {place for word in words for place in word}
    alone = [[place] for place in range(len(axis)) if place not in held]
    return sorted([*(list(word) for word in words), *alone])


def _names(axis: Axis, groups: list[list[int]]) -> list[str]:
    names = axis.names
    return ["".join(_bare(names[place], alone=len(places) == 1) for place in places) for places in groups]


def _bare(piece: str, *, alone: bool) -> str:
    """Without the marks of subword tokenisers, where pieces are put together."""
    return piece if alone else piece.removeprefix("##").removesuffix("@@").replace("\u2581", "").replace("\u0120", "")


def _text(items: Sequence[Item], width: int | None) -> str:
    lines: list[str] = []
    for item in items:
        lines += [printable(item.title), ""]
        for each in item.maps:
            heads = each.weights.shape[0]
            weights, source, target = merged(each)
            lines += [printable(each.name if heads == 1 else f"{each.name}, mean of {heads} heads")]
            lines += [draw_attention(weights, source, target, width=width), ""]
        for measure in item.measures:
            value = measure.value if isinstance(measure.value, str) else f"{measure.value:.4g}"
            lines += [printable(f"{measure.name}  {value}"), printable(f"    {measure.meaning}")]
        lines += [""] if item.measures else []
    return "\n".join(lines)


def _picture(items: Sequence[Item], suffix: str) -> bytes:
    maps = [each for item in items for each in item.maps]
    names = [each.name for each in maps] if any(len(item.maps) > 1 for item in items) else ()
    buffer = io.BytesIO()
    plot_attention([merged(each) for each in maps], buffer, suffix=suffix, names=names)
    return buffer.getvalue()


def _data(items: Sequence[Item], title: str) -> dict[str, Any]:
    def one(each: Map) -> dict[str, Any]:
        return {
            "name": each.name,
            "layer": each.layer,
            "queries": describe_axis(each.queries),
            "keys": describe_axis(each.keys),
            "weights": each.weights.detach().float().cpu().tolist(),
        }

    return {
        "title": title,
        "items": [
            {
                "title": item.title,
                "maps": [one(each) for each in item.maps],
                "measures": [vars(measure) for measure in item.measures],
                "links": None if item.links is None else [list(pair) for pair in item.links],
            }
            for item in items
        ],
    }
