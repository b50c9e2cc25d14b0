"""Pictures that a model attended to, and where each patch is."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.interpretation.explorer import ImageAxis
from saccade.interpretation.explorer.media import colour_png

MOST_LEADING = 9
"""Tokens before the patches: a class token, and perhaps some registers."""
LARGEST = 1024
"""Pixels across a picture on the page."""


class Pictures:
    """The pictures of a batch.

    Args:
        given: pixels (batch, channels, lines, columns) or (channels, lines, columns), or a PIL image, or several.
    """

    def __init__(self, given: Any) -> None:
        if isinstance(given, Tensor):
            self._each: list[Any] = list(given if given.dim() == 4 else given.unsqueeze(0))
        else:
            self._each = list(given) if isinstance(given, list | tuple) else [given]

    def __len__(self) -> int:
        return len(self._each)

    def axis(self, row: int, tokens: int) -> ImageAxis | None:
        """The axis with this many tokens, if they can be patches of the picture."""
        picture = self._each[row]
        exact = isinstance(picture, Tensor)
        lines, columns = picture.shape[-2:] if exact else picture.size[::-1]
        found = find_grid(tokens, lines, columns, exact=exact)
        if found is None:
            return None
        grid, leading = found
        names = ["[CLS]", *(f"[extra {number}]" for number in range(1, leading))][:leading]
        return ImageAxis(png=_tensor_png(picture) if exact else _image_png(picture), grid=grid, leading=names)

    def cut(self, row: int, grid: tuple[int, int]) -> bool:
        """Whether the model may have seen only a part: the picture has a different shape from the grid."""
        picture = self._each[row]
        if isinstance(picture, Tensor):
            return False
        width, height = picture.size
        return not math.isclose(width / height, grid[1] / grid[0], rel_tol=0.1)


def is_pictures(given: Any) -> bool:
    """Whether these are pixels or PIL images."""
    if isinstance(given, Tensor):
        return given.dim() in (3, 4) and given.shape[-3] in (1, 3, 4)
    first = given[0] if isinstance(given, list | tuple) and given else given
    return type(first).__module__.startswith("PIL.")


def find_grid(tokens: int, lines: int, columns: int, *, exact: bool) -> tuple[tuple[int, int], int] | None:
    """The (lines, columns) of patches and the number of tokens before them: as few of these as possible.

    Args:
        tokens: how many there are altogether.
        lines: of the picture, in pixels.
        columns: of the picture, in pixels.
        exact: whether this is the size that the model saw. Otherwise most models scale a picture to a square first.
    """
    for leading in range(min(MOST_LEADING, tokens - 1) + 1):
        patches = tokens - leading
        side = math.isqrt(patches)
        if not exact:
            if side * side == patches:
                return (side, side), leading
            continue
        # A patch of p pixels makes lines // p x columns // p of them; pixels may be left over at the edge.
        size = max(int(math.sqrt(lines * columns / patches)), 1)
        for patch in (size, size - 1, size + 1):
            if patch > 0 and (lines // patch) * (columns // patch) == patches:
                return (lines // patch, columns // patch), leading
    return None


def _tensor_png(pixels: Tensor) -> bytes:
    """Pixels as the model saw them. Normalised ones are stretched to the range of a picture."""
    values = pixels.detach().float().cpu()[:3]
    if pixels.dtype == torch.uint8:
        values = values / 255
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1:
        values = (values - low) / max(high - low, 1e-9)
    whole = (255 * values.expand(3, -1, -1)).round().permute(1, 2, 0)
    return colour_png(whole.numpy().astype(np.uint8))


def _image_png(picture: Any) -> bytes:
    small = picture.convert("RGB")
    small.thumbnail((LARGEST, LARGEST))
    buffer = io.BytesIO()
    small.save(buffer, "PNG")
    return buffer.getvalue()
