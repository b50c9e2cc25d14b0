"""The explorer's page: one self-contained HTML file."""

import base64
import hashlib
import html
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from saccade.artifacts import write_file
from saccade.interpretation.explorer.axes import Axis, ImageAxis, TextAxis
from saccade.interpretation.explorer.items import Item
from saccade.interpretation.explorer.packing import pack
from saccade.interpretation.explorer.sound import SoundAxis
from saccade.interpretation.explorer.top import TopWeights
from saccade.interpretation.explorer.visits import VisitAxis

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="explorer"></div>
<noscript>This page needs JavaScript to draw attention weights.</noscript>
"""


def write_page(
    path: str | os.PathLike[str],
    items: Sequence[Item],
    *,
    title: str,
    max_megabytes: float = 24.0,
    side_by_side: bool = False,
) -> None:
    """Writes one self-contained HTML file that shows the items.

    Weights are quantised: 16 bits each on small pages, otherwise 8 bits, and fewer levels if the file would exceed
    `max_megabytes`. The page says which.

    Args:
        path: the file to write.
        items: what to show.
        title: the page's title.
        max_megabytes: the maximum size of the file.
        side_by_side: whether to open with the first two items next to each other.
    """
    text = page(items, title=title, max_megabytes=max_megabytes, side_by_side=side_by_side)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)


def page(items: Sequence[Item], *, title: str, max_megabytes: float = 24.0, side_by_side: bool = False) -> bytes:
    """The bytes of that file."""
    if not items:
        raise ValueError("There are no items to show.")
    script, style = _asset("explorer.js"), _asset("explorer.css")
    described = _describe(items, title, side_by_side)
    # Pictures and recordings take their share first; base64 turns 3 bytes of weights into 4.
    room = max_megabytes * 1e6 - len(json.dumps(described))
    if room <= 0:
        raise ValueError(
            f"The texts, pictures and recordings alone exceed max_megabytes={max_megabytes:g}: show fewer items, leave "
            "out the sound, or raise max_megabytes."
        )
    packed = pack([each.weights for item in items for each in item.maps], most_bytes=int(room * 3 / 4))
    head = PAGE.format(policy=page_policy(), title=html.escape(title), style=style)
    # Browsers do not run blocks of other types; `<` is escaped, so that no text can end the block.
    data = json.dumps({**described, "levels": packed.levels}, separators=(",", ":")).replace("<", "\\u003c")
    parts = [head.encode("utf-8", "replace"), f'<script type="application/json" id="data">{data}</script>\n'.encode()]
    for number, block in enumerate(packed.blocks):
        start = f'<script type="application/octet-stream" id="block-{number}">'
        parts += [start.encode(), base64.b64encode(block), b"</script>\n"]
    parts.append(f"<script>{script}</script>\n</body>\n</html>\n".encode())
    return b"".join(parts)


@cache
def page_policy(*others: str) -> str:
    """The Content-Security-Policy of a page: only its own script and style run, and nothing is fetched or sent.

    Sound needs no rule of its own, since the script decodes it from the page.

    Args:
        others: where else scripts and styles may come from, for a page that embeds this one.
    """
    script, style = (" ".join([*others, f"'sha256-{_digest(_asset(f'explorer.{kind}'))}'"]) for kind in ("js", "css"))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def _describe(items: Sequence[Item], title: str, beside: bool) -> dict[str, Any]:
    axes: list[Axis] = []
    described: list[dict[str, Any]] = []
    block = 0

    def number(axis: Axis) -> int:
        """Equal axes are written once."""
        if axis not in axes:
            axes.append(axis)
        return axes.index(axis)

    for item in items:
        maps = []
        for each in item.maps:
            heads = each.weights.shape[0]
            queries, keys = number(each.queries), number(each.keys)
            sides = None if each.sides is None else list(each.sides)
            picked = None if each.picked is None else list(each.picked)
            place = {"block": block, "rows": queries, "cols": keys, "sides": sides, "picked": picked}
            added = None if each.contributions is None else [one.as_json() for one in each.contributions]
            top = each.weights.values.shape[-1] if isinstance(each.weights, TopWeights) else None
            said = {"name": each.name, "layer": each.layer, "heads": heads, "top": top}
            maps.append({**said, **place, "contributions": added})
            block += heads
        described.append(
            {
                "title": item.title,
                "maps": maps,
                "measures": [
                    {"name": each.name, "value": each.value, "meaning": each.meaning} for each in item.measures
                ],
                "links": None if item.links is None else [list(pair) for pair in item.links],
                "outcomes": [vars(each) for each in item.outcomes],
                "notes": list(item.notes),
            }
        )
    shown = [describe_axis(axis) for axis in axes]
    return {"title": title, "beside": beside, "axes": shown, "items": described}


def describe_axis(axis: Axis) -> dict[str, Any]:
    """The axis as JSON."""
    if isinstance(axis, TextAxis):
        return {
            "kind": "text",
            "pieces": list(axis.pieces),
            "words": _groups(axis.words),
            "special": list(axis.special),
            "sentences": _groups(axis.sentences),
            "gold": None if axis.gold is None else list(axis.gold),
            "origins": None if axis.origins is None else list(axis.origins),
        }
    if isinstance(axis, ImageAxis):
        return {"kind": "image", "png": _base64(axis.png), "grid": list(axis.grid), "leading": list(axis.leading)}
    if isinstance(axis, SoundAxis):
        sound = None if axis.wav is None else _base64(axis.wav)
        return {
            "kind": "sound",
            "png": _base64(axis.png),
            "frames": axis.frames,
            "seconds": axis.seconds,
            "wav": sound,
        }
    if isinstance(axis, VisitAxis):
        return axis.as_json()
    labels = None if axis.labels is None else list(axis.labels)
    return {"kind": "nodes", "names": list(axis.names), "labels": labels, "centre": axis.centre}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _groups(groups: Sequence[Sequence[int]] | None) -> list[list[int]] | None:
    return None if groups is None else [list(group) for group in groups]


def _asset(name: str) -> str:
    return (resources.files("saccade.interpretation.explorer") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
