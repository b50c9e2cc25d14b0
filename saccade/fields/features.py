"""Annotations of pictures by a frozen backbone, computed once and cached in Arrow files by content."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saccade.artifacts import load_weights, read_header, read_tensors, save_weights, set_weights, shapes_of, weights_of
from saccade.data.errors import DataError, one_line
from saccade.data.marks import digest
from saccade.data.media import opened
from saccade.data.storage import Stored, store
from saccade.encoders.backbones import Backbone
from saccade.fields.cache import TensorCache, content_key
from saccade.kernels.cache import private_cache

FILE = "backbone.safetensors"
KEY, VALUES = "key", "values"

BATCH = 32
CACHED = 256 << 20
"""Bytes of annotations of new pictures that stay in memory."""

EncodedPicture = Mapping[str, Any]
Squares = Callable[[EncodedPicture], Tensor]
"""uint8 (3, side, side): the part of a picture that is read."""


class Annotator:
    """A backbone with a cache of its annotations.

    Args:
        backbone: with any weights, until `read` or `load` has been called.
        folder: for annotations; None for the user's cache folder.
        settings: what else annotations depend on: size, resize and square of the field.
    """

    def __init__(self, backbone: Backbone, folder: str | None, settings: tuple[int, int, str]) -> None:
        self.backbone, self.folder, self.settings = backbone.eval().requires_grad_(False), folder, settings
        self.name, self.dim = type(backbone).__name__, backbone.output_dim
        self.shape = backbone.grid(settings[0]) ** 2, self.dim
        self._kept: Annotations | None = None
        self._new = TensorCache(CACHED)
        self._digests: dict[Hashable, bytes] = {}

    def read(self) -> None:
        """Loads the backbone from its state file and opens the cache."""
        read_backbone(self.backbone)
        self._opened()

    def save(self, folder: Path) -> None:
        """Writes the weights, so that a run needs no other file."""
        save_weights(self.backbone, folder / FILE)

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote."""
        load_weights(self.backbone, folder / FILE)
        self._opened()

    def _opened(self) -> None:
        cache = private_cache() if self.folder is None else None
        base = cache / "annotations" if cache is not None else None if self.folder is None else Path(self.folder)
        own = None if base is None else base / fingerprint(self.backbone, *self.settings)
        self._kept = Annotations(own, self.shape)
        self._new = TensorCache(CACHED)

    def annotate_all(self, several: Iterable[EncodedPicture], squares: Squares) -> None:
        """Annotates new pictures, and caches the result."""
        kept = self._annotations()

        def found() -> Iterator[tuple[bytes, Tensor]]:
            seen: set[bytes] = set()
            waiting: list[tuple[bytes, EncodedPicture]] = []
            for encoded in several:
                key = self._key(encoded)
                if key not in kept and key not in seen:
                    seen.add(key)
                    waiting.append((key, encoded))
                if len(waiting) == BATCH:
                    yield from self._computed(waiting, squares)
                    waiting = []
            yield from self._computed(waiting, squares)

        kept.add(found())

    def annotations(self, several: Sequence[EncodedPicture], squares: Squares) -> Tensor:
        """(pictures, places, features), computed for pictures that are not in the cache."""
        kept = self._annotations()
        keys = [self._key(encoded) for encoded in several]
        known: dict[bytes, Tensor] = {}
        for key in keys:
            found = self._new.get(key)
            found = kept.get(key) if found is None else found
            if found is not None:
                known[key] = found
        lacking = {key: encoded for key, encoded in zip(keys, several, strict=True) if key not in known}
        for key, found in self._computed(list(lacking.items()), squares):
            known[key] = found
            self._new.put(key, found)
        return torch.stack([known[key] for key in keys])

    def _annotations(self) -> Annotations:
        if self._kept is None:
            raise ValueError(f"{self.name} has no weights yet: fit the field, or load it.")
        return self._kept

    def _computed(
        self, waiting: Sequence[tuple[bytes, EncodedPicture]], squares: Squares
    ) -> Iterator[tuple[bytes, Tensor]]:
        for start in range(0, len(waiting), BATCH):
            part = waiting[start : start + BATCH]
            pictures = torch.stack([squares(encoded) for _, encoded in part]).float() / 255.0
            mean, deviation = (
                torch.tensor(three).reshape(3, 1, 1) for three in (self.backbone.mean, self.backbone.deviation)
            )
            with torch.no_grad():
                found = _Annotating(self.backbone)((pictures - mean) / deviation)
            yield from ((key, each) for (key, _), each in zip(part, found, strict=True))

    def network(self) -> nn.Module:
        """Pixels (pictures, 3, side, side), scaled as the backbone expects -> what `annotations` returns."""
        return _Annotating(self.backbone)

    def _key(self, encoded: EncodedPicture) -> bytes:
        """The digest of a picture's file; read again only if the file has changed."""
        if encoded["bytes"] is not None:
            return digest(encoded["bytes"])
        known = content_key(encoded["path"])
        if known not in self._digests:
            with opened(encoded["path"]) as file:
                self._digests[known] = digest(file.read())
        return self._digests[known]


class _Annotating(nn.Module):
    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, pictures: Tensor) -> Tensor:
        found: Tensor = self.backbone(pictures).flatten(2).transpose(1, 2)
        return found.half().float()  # from the start, so that kept annotations equal new ones


class Annotations:
    """The annotations of pictures, in half precision, by the digest of what they were computed from.

    Args:
        folder: of Arrow files; each training adds one with the pictures that were new to it. None if there is no
            folder to keep them in, which is enough for predictions.
        shape: (places, features) of a picture.
    """

    def __init__(self, folder: Path | None, shape: tuple[int, int]) -> None:
        self.folder, self.shape = folder, shape
        self._files: list[Stored] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        for path in () if folder is None else sorted(folder.glob("*.arrow")):
            self._open(Stored(path))

    def _open(self, stored: Stored) -> None:
        number = len(self._files)
        self._files.append(stored)
        for row, example in enumerate(stored):
            if len(example[VALUES]) == 2 * self.shape[0] * self.shape[1]:
                self._places[example[KEY]] = number, row

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def get(self, key: bytes) -> Tensor | None:
        """(places, features), if they are known."""
        place = self._places.get(key)
        if place is None:
            return None
        number, row = place
        values = np.frombuffer(self._files[number][row][VALUES], dtype="<f2")
        return torch.from_numpy(values.astype(np.float32)).reshape(self.shape)

    def add(self, several: Iterable[tuple[bytes, Tensor]]) -> None:
        """Keeps more of them, in a new file; an interrupted call keeps none."""
        if self.folder is None:
            raise ValueError("There is no private cache folder for annotations: set `features` to a folder.")

        def rows() -> Iterator[Mapping[str, bytes]]:
            for key, each in several:
                yield {KEY: key, VALUES: each.numpy().astype("<f2").tobytes()}

        path = self.folder / f"{uuid.uuid4().hex}.arrow"
        stored = store(rows(), path)
        if len(stored):
            self._open(stored)
        else:
            path.unlink()


def read_backbone(backbone: Backbone) -> None:
    """Loads a backbone from its state file; anything else in the file, such as a classifier, is ignored."""
    path = backbone.weights
    try:
        if Path(path).suffix == ".safetensors":
            state = dict(read_tensors(path, read_header(path)))
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(state, dict) or not all(isinstance(each, Tensor) for each in state.values()):
            raise ValueError("it is not a state dict of tensors")
        given, own = backbone.renamed(state), weights_of(backbone)
        missing = [name for name in own if name not in given]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing[:3])}{' and more' * (len(missing) > 3)}")
        wrong = [name for name in own if not bool(given[name].float().isfinite().all())]
        if wrong:
            raise ValueError(f"{wrong[0]} contains NaN or infinite values")
        set_weights(backbone, {name: given[name].to(own[name].dtype) for name in own}, path)
    except FileNotFoundError:
        raise DataError(f"There is no file {path} to read the backbone from: see `weights`.") from None
    except Exception as error:  # torch raises many kinds for other files
        fix = "Give a .safetensors file or a .pth file of tensors alone."
        raise DataError(
            f"{path} cannot be read as the weights of {type(backbone).__name__}: {one_line(error)[:300]}. {fix}"
        ) from None


def fingerprint(backbone: Backbone, *settings: object) -> str:
    """A fingerprint of the weights and settings."""
    weights = {name: tensor.cpu().numpy() for name, tensor in weights_of(backbone).items()}
    return digest([type(backbone).__name__, repr(shapes_of(backbone)), weights, repr(settings)]).hex()
