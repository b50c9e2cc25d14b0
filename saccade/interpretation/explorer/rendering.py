"""Items as a page, as text for a terminal, as pictures and as data."""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor

from saccade.interpretation.alignments import merge_words
from saccade.interpretation.explorer.axes import Axis, NodeAxis, TextAxis
from saccade.interpretation.explorer.items import Item, Map, Outcome
from saccade.interpretation.explorer.page import describe_axis, page
from saccade.interpretation.explorer.sound import SoundAxis
from saccade.interpretation.explorer.visits import VisitAxis
from saccade.interpretation.plots import Bars, Drawing, Heat, OverTime, plot_attention
from saccade.interpretation.text import draw_attention, draw_bars, draw_over_time, printable

FORMATS = ("html", "text", "png", "svg", "json")


def render(
    items: Sequence[Item],
    format: str,
    *,
    title: str = "Attention",
    width: int | None = None,
    side_by_side: bool = False,
) -> bytes:
    """Renders the items as the contents of a file: `html`, `text` (UTF-8), `png`, `svg` or `json`.

    Text and pictures show the mean over heads, in words if the axes have them: a map of one row and a node's neighbours
    as bars, recordings over time. Pages and JSON contain every head.

    Args:
        items: what to show.
        format: one of `FORMATS`.
        title: the page's title.
        width: of the text, in characters; by default that of the terminal.
        side_by_side: whether the page opens with the first two items next to each other.
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
    """The mean over heads in words, with the names of keys and queries.

    Shapes:
        -> weights (query words, key words).
    """
    queries, keys = _groups(each.queries), _groups(each.keys)
    weights = merge_words(each.dense().detach().float().cpu().mean(dim=0), keys, queries)
    return weights, _names(each.keys, keys), _names(each.queries, queries)


def drawing(each: Map) -> Drawing:
    """Bars for a single row and for a node's neighbours, a map over time for sound, otherwise a plain map."""
    weights, source, target = merged(each)
    if isinstance(each.keys, NodeAxis):
        row = each.queries.centre if isinstance(each.queries, NodeAxis) else 0
        kept = [j for j in range(len(source)) if len(target) == 1 or weights[row, j] > 0]
        labels = each.keys.labels or [""] * len(source)
        names = [f"{source[j]} ({labels[j]})" if labels[j] else source[j] for j in kept]
        return Bars([float(weights[row, j]) for j in kept], names, target[row])
    if isinstance(each.keys, SoundAxis):
        return OverTime(weights, each.keys.seconds, target, each.keys.png)
    if len(target) == 1:
        return Bars(weights[0].tolist(), source, target[0])
    return Heat(weights, source, target)


def _groups(axis: Axis) -> list[list[int]]:
    return axis.groups if isinstance(axis, TextAxis) else [[place] for place in range(len(axis))]


def _names(axis: Axis, groups: list[list[int]]) -> list[str]:
    names = list(axis.names)
    joined = ["".join(_bare(names[place], alone=len(places) == 1) for place in places) for places in groups]
    return [text.strip() or text if len(places) > 1 else text for text, places in zip(joined, groups, strict=True)]


def _bare(piece: str, *, alone: bool) -> str:
    """The piece without the marks of subword tokenisers, if it is joined to others."""
    return piece if alone else piece.removeprefix("##").removesuffix("@@").replace("\u2581", "").replace("\u0120", "")


def _text(items: Sequence[Item], width: int | None) -> str:
    lines: list[str] = []
    for item in items:
        lines += [printable(item.title), *map(_outcome, item.outcomes), ""]
        for each in item.maps:
            heads = each.weights.shape[0]
            drawn = drawing(each)
            name = each.name if heads == 1 else f"{each.name}, mean of {heads} heads"
            if isinstance(drawn, Bars):
                lines += [printable(f"{name}: {drawn.title}"), draw_bars(drawn.values, drawn.names, width=width)]
                lines += [*_reasons(each), ""]
            elif isinstance(drawn, OverTime):
                lines += [printable(name), draw_over_time(drawn.weights, drawn.seconds, drawn.target, width=width), ""]
            else:
                lines += [printable(name), draw_attention(*drawn, width=width), ""]
            if each.contributions is not None and isinstance(each.keys, VisitAxis):
                lines += [*map(printable, each.contributions[-1].lines(each.keys)), ""]
        for measure in item.measures:
            value = measure.value if isinstance(measure.value, str) else f"{measure.value:.4g}"
            lines += [printable(f"{measure.name}  {value}"), printable(f"    {measure.meaning}")]
        lines += [printable(note) for note in item.notes]
        lines += [""] if item.measures or item.notes else []
    return "\n".join(lines)


def _reasons(each: Map) -> list[str]:
    """What the model picked, and what people marked."""
    if not isinstance(each.keys, TextAxis):
        return []
    found = {"picked by the model": each.picked, "marked by people": each.keys.gold}
    return [
        printable(f"{name}: {' … '.join(passages(each.keys, places)) or '(nothing)'}")
        for name, places in found.items()
        if places is not None
    ]


def passages(axis: TextAxis, places: Iterable[int]) -> list[str]:
    """The words that contain any of these pieces, without special tokens; neighbouring words are joined."""
    wanted = set(places) - set(axis.special)
    groups = axis.groups
    names = _names(axis, groups)
    found: list[list[str]] = []
    before = -2
    for number, pieces in enumerate(groups):
        if wanted.intersection(pieces):
            if number == before + 1:
                found[-1].append(names[number])
            else:
                found.append([names[number]])
            before = number
    return [" ".join(words) for words in found]


def _outcome(outcome: Outcome) -> str:
    sure = "" if outcome.probability is None else f"  {outcome.probability:.3f}"
    return printable(f"{outcome.label}{sure}{'  (true label)' if outcome.gold else ''}")


def _picture(items: Sequence[Item], suffix: str) -> bytes:
    maps = [each for item in items for each in item.maps]
    names = [each.name for each in maps] if any(len(item.maps) > 1 for item in items) else ()
    buffer = io.BytesIO()
    plot_attention([drawing(each) for each in maps], buffer, suffix=suffix, names=names)
    return buffer.getvalue()


def _data(items: Sequence[Item], title: str) -> dict[str, Any]:
    def one(each: Map) -> dict[str, Any]:
        return {
            "name": each.name,
            "layer": each.layer,
            "queries": describe_axis(each.queries),
            "keys": describe_axis(each.keys),
            "weights": each.dense().detach().float().cpu().tolist(),
            "picked": None if each.picked is None else list(each.picked),
            "contributions": None if each.contributions is None else [one.as_json() for one in each.contributions],
        }

    return {
        "title": title,
        "items": [
            {
                "title": item.title,
                "maps": [one(each) for each in item.maps],
                "measures": [vars(measure) for measure in item.measures],
                "links": None if item.links is None else [list(pair) for pair in item.links],
                "outcomes": [vars(outcome) for outcome in item.outcomes],
                "notes": list(item.notes),
            }
            for item in items
        ],
    }
