"""Pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.data.cell import Cell, shown, text_of
from saccade.data.errors import DataError
from saccade.data.pictures import KINDS, PictureError, Pixels, Square, as_png, check_picture, read_picture
from saccade.encoders.backbones import Backbone
from saccade.fields.base import Field, Padded, fields
from saccade.fields.cache import TensorCache, content_key
from saccade.fields.features import Annotator
from saccade.interpretation.explorer import ImageAxis, TextAxis

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""The means and deviations of red, green and blue in photographs (ImageNet)."""
CACHED = 512 << 20
"""Bytes of pixels that stay in memory."""
DRAWN = 256
"""The maximum side, in pixels, of a picture in the explorer's page."""
LARGEST = 1024

Picture = dict[str, Any]
"""`name`, as the user wrote it; `path`, or the file's contents as `bytes`."""


@fields.register("image")
class Image(Field):
    r"""A picture, read as a grid of patches, line by line from the upper left.

    .. math:: x_{ij} = \frac{\text{pixels of patch } (i, j) / 255 - \mu}{\sigma}

    with the mean and deviation of each colour in photographs. A patch is a vector of 3 x patch x patch numbers; an
    encoder projects each patch, or reassembles the picture.

    A cell is the path of a JPEG, PNG, WebP, GIF, BMP or TIFF file. In memory it can also be the bytes of such a file,
    an array (lines, columns, 3), a Pillow image, or a dictionary as in Hugging Face datasets: `{bytes, path}`. Pictures
    are rotated according to their EXIF tag and converted to RGB. Decoding needs Pillow.

    Args:
        size: the side of the square that is read, in pixels; a multiple of `patch`.
        patch: the side of a patch in pixels.
        resize: the length that the shorter side is scaled to before a square of `size` is cut out; `size` by default. A
            larger value leaves room for `random_crop`.
        square: "crop" keeps the proportions and reads the middle, "stretch" reads all of the picture, distorted
            unless it is a square.
        random_crop: training cuts out a square from a random place, not from the middle.
        flip: training mirrors half of the pictures, left to right.
        backbone: a pretrained network, such as `{class: efficientnet_lite0, weights: FILE}`, whose annotations take the
            place of the patches. It is not trained, and each picture passes through it once: the annotations of the
            training pictures are kept in `features`.
        features: the folder for annotations, by default in the user's cache folder; several trainings may share it.
    """

    holds = "file"
    decodes = True
    repeats = True
    suffixes = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    unit = "patches"

    def __init__(
        self,
        *,
        size: int = 128,
        patch: int = 16,
        resize: int | None = None,
        square: Square = "crop",
        random_crop: bool = False,
        flip: bool = False,
        backbone: Backbone | None = None,
        features: str | None = None,
    ) -> None:
        check_count("size", size)
        check_count("patch", patch)
        if size % patch and backbone is None:
            raise ValueError(f"size must be a multiple of patch, got size={size} and patch={patch}.")
        if square not in ("crop", "stretch"):
            raise ValueError(f"square must be 'crop' or 'stretch', got {square!r}.")
        self.side, self.patch, self.square = size, patch, square
        self.resize = size if resize is None else resize
        if not size <= self.resize <= LARGEST:
            raise ValueError(f"resize must be from size={size} to {LARGEST}, got {self.resize}.")
        if backbone is not None and (random_crop or flip):
            raise ValueError("a backbone sees each picture only once: leave out random_crop and flip.")
        if backbone is None and features is not None:
            raise ValueError(f"features={features!r} is where a backbone's annotations are kept: name a backbone.")
        self.random_crop, self.flip = random_crop, flip
        self.grid = size // patch if backbone is None else backbone.grid(size)
        if self.grid < 1:
            raise ValueError(f"size={size} is too small for the backbone: it takes {backbone.stride} pixels or more.")  # type: ignore[union-attr]
        self.backbone = None if backbone is None else Annotator(backbone, features, (size, self.resize, square))
        self._cache = TensorCache(CACHED)
        self._known: set[Hashable] = set()
        """The files that were decoded without an error, since a table may name a picture once for each caption."""

    @property
    def longest(self) -> int:
        return self.grid**2

    def read(self, raw: Any, cell: Cell) -> Picture:
        name = _name(raw, cell)
        try:
            source = _source(raw, cell)
            key = content_key(source)
            if key is None or key not in self._known:
                check_picture(source)
                if isinstance(source, str):  # a server reads new bytes with every request
                    self._known.add(key)
        except PictureError as error:
            raise cell.bad(f"the {cell.role} {name!r} cannot be used: {error.problem}", error.fix) from None
        path, data = (source, None) if isinstance(source, str) else ("", source)
        return {"name": name, "path": path, "bytes": data}

    def identity(self, value: Picture) -> Picture:
        return value if value["path"] else {**value, "name": ""}  # which counts the values in memory

    def fit(self, values: Iterable[Picture]) -> None:
        """Lets the backbone, if there is one, annotate all pictures."""
        if self.backbone is not None:
            self.backbone.read()
            self.backbone.annotate_all((self.encode(value) for value in values), self._middle)

    def save(self, folder: Path) -> None:
        if self.backbone is not None:
            self.backbone.save(folder)

    def load(self, folder: Path) -> None:
        if self.backbone is not None:
            self.backbone.load(folder)

    def sizes(self) -> dict[str, int]:
        return {"dim": 3 * self.patch**2 if self.backbone is None else self.backbone.dim}

    def encode(self, value: Picture) -> dict[str, Any]:
        return {"path": value["path"], "bytes": value["bytes"]}

    def size(self, encoded: Mapping[str, Any]) -> int:
        return self.longest

    def pad(self, encoded: Sequence[Mapping[str, Any]], generator: torch.Generator | None = None) -> Padded:
        mask = torch.ones(len(encoded), self.longest).bool()
        if self.backbone is not None:
            return {"values": self.backbone.annotations(encoded, self._middle), "mask": mask}
        squares = torch.stack([self._square(self._pixels(each), generator) for each in encoded])
        values = (squares.float() / 255.0 - _colours(MEAN)) / _colours(DEVIATION)
        return {"values": to_patches(values, self.patch), "mask": mask}

    def _middle(self, encoded: Mapping[str, Any]) -> Tensor:
        return self._square(self._pixels(encoded), None)

    def axis(self, value: Picture, length: int | None = None) -> ImageAxis | TextAxis:
        positions = length or self.longest
        grid = math.isqrt(positions)
        if grid**2 != positions:  # a model that joins patches across lines
            return TextAxis(pieces=[str(number) for number in range(1, positions + 1)])
        return ImageAxis(png=self._drawn(self.encode(value)), grid=(grid, grid))

    def position_names(self, value: Picture, length: int | None = None) -> list[str]:
        positions = length or self.longest
        grid = math.isqrt(positions)
        if grid**2 != positions:
            return [str(number) for number in range(1, positions + 1)]
        return [f"{line},{column}" for line in range(1, grid + 1) for column in range(1, grid + 1)]

    def show(self, value: Picture) -> str:
        return str(value["name"])

    def learned(self) -> str:
        what = "patches" if self.backbone is None else f"annotations by {self.backbone.name}"
        return f"{self.grid} x {self.grid} {what} of pictures of {self.side} x {self.side} pixels"

    def portable(self) -> dict[str, Any]:
        about = {"size": self.side, "resize": self.resize, "square": self.square, "positions": self.longest}
        if self.backbone is None:
            return {"kind": "image", **about, "patch": self.patch, "mean": MEAN, "deviation": DEVIATION}
        network = self.backbone.backbone
        return {"kind": "image", **about, "patch": None, "mean": network.mean, "deviation": network.deviation}

    def network(self) -> nn.Module | None:
        return None if self.backbone is None else self.backbone.network()

    def stand_ins(self, count: int, length: int) -> Padded:
        values = torch.rand(count, 3, self.side, self.side)
        mask = torch.ones(count, self.longest).bool()
        return {"values": to_patches(values, self.patch) if self.backbone is None else values, "mask": mask}

    def _decoded(self, encoded: Mapping[str, Any], shorter: int | None) -> Pixels:
        source = encoded["path"] if encoded["bytes"] is None else encoded["bytes"]
        try:
            return read_picture(source, shorter=shorter, square=self.square)
        except PictureError as error:
            name = encoded["path"] or "in memory"
            raise DataError(f"The picture {name} cannot be used: {error.problem}. {error.fix}") from None

    def _pixels(self, encoded: Mapping[str, Any]) -> Tensor:
        """uint8 (3, lines, columns), the shorter side scaled to `resize`; from the cache if possible."""
        key = content_key(encoded["path"] if encoded["bytes"] is None else encoded["bytes"])
        found = None if key is None else self._cache.get(key)
        if found is None:
            found = torch.from_numpy(self._decoded(encoded, self.resize)).permute(2, 0, 1).contiguous()
            if key is not None:
                self._cache.put(key, found)
        return found

    def _square(self, pixels: Tensor, generator: torch.Generator | None) -> Tensor:
        """A square of the side that is read: from the middle, or in training from anywhere, and perhaps mirrored."""
        places = []
        for length in pixels.shape[1:]:
            room = length - self.side
            draw = generator is not None and self.random_crop
            places.append(int(torch.randint(room + 1, (), generator=generator)) if draw else room // 2)
        top, left = places
        square = pixels[:, top : top + self.side, left : left + self.side]
        mirror = generator is not None and self.flip and bool(torch.rand((), generator=generator) < 0.5)
        return square.flip(2) if mirror else square

    def _drawn(self, encoded: Mapping[str, Any]) -> bytes:
        """The part of a picture that the model reads, in the picture's own resolution if that is higher."""
        pixels = self._decoded(encoded, None)
        most = min(pixels.shape[:2]) * self.side // self.resize
        side = max(self.side, min(DRAWN, most))
        pixels = self._decoded(encoded, round(self.resize * side / self.side))
        top, left = ((length - side) // 2 for length in pixels.shape[:2])
        return as_png(pixels[top : top + side, left : left + side])


def to_patches(pictures: Tensor, patch: int) -> Tensor:
    """(batch, 3, lines, columns) -> (batch, patches, 3 x patch x patch), line by line."""
    batch, colours, lines, columns = pictures.shape
    parts = pictures.reshape(batch, colours, lines // patch, patch, columns // patch, patch)
    return parts.permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, colours * patch * patch)


def _colours(three: tuple[float, float, float]) -> Tensor:
    return torch.tensor(three).reshape(3, 1, 1)


def _source(raw: Any, cell: Cell) -> str | bytes:
    """The path of a picture, or the contents of its file."""
    if isinstance(raw, Mapping):
        return _source(raw["path"] if raw.get("bytes") is None else raw["bytes"], cell)
    if isinstance(raw, bytes | bytearray | memoryview):
        return bytes(raw)
    if isinstance(raw, str | os.PathLike):
        return os.path.abspath(cell.folder / raw)
    return as_png(raw.detach().cpu().numpy() if isinstance(raw, Tensor) else raw)


def _name(raw: Any, cell: Cell) -> str:
    """What the user calls a picture."""
    path = raw.get("path") if isinstance(raw, Mapping) else getattr(raw, "filename", raw)
    if isinstance(path, str | os.PathLike) and os.fspath(path):
        return text_of(os.fspath(path), cell)
    if isinstance(raw, Mapping) and raw.get("bytes") is None:
        fix = "Give bytes or path."
        raise cell.bad(f"the {cell.role} is a dictionary without a picture (keys: {sorted(map(str, raw))})", fix)
    if isinstance(raw, Mapping | Tensor | bytes | bytearray | memoryview) or hasattr(raw, "__array_interface__"):
        return f"picture {cell.line}"
    if raw is None or raw == "":
        raise cell.bad(f"the {cell.role} is empty", "Give the path of a picture.")
    raise cell.bad(f"the {cell.role} is not a picture but {shown(raw)}", f"Give the path of a file: {KINDS}.")
