"""A trace in a folder: a list of its calls as JSON, and their tensors as safetensors files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.artifacts.documents import JsonObject, read_json
from saccade.artifacts.files import ArtifactError, write_file
from saccade.artifacts.tensors import pack_tensors, read_header
from saccade.interpretation.recording.blocks import weights_of
from saccade.interpretation.recording.graphs import Edges
from saccade.interpretation.recording.kept import Kept
from saccade.interpretation.recording.missing import Missing
from saccade.interpretation.recording.multihead import Projected, apart
from saccade.interpretation.recording.positions import Positions
from saccade.interpretation.recording.recipes import Captured, Given, Recipe, ScaledDot, Tensors, Top
from saccade.interpretation.recording.steps import Part, is_step
from saccade.kernels.private_torch import version

INDEX = "trace.json"
FORMAT = 1
FILE = re.compile(r"\d{6,9}\.safetensors")
RECIPES: dict[str, type[Recipe]] = {each.__name__: each for each in (ScaledDot, Given, Top, Edges, Projected, Part)}
"""Recipes that only need tensors and numbers; for others, the weights are written."""
NEEDED = {
    "ScaledDot": {"query", "key"},
    "Projected": {"query", "key"},
    "Given": {"weights"},
    "Part": {"weights"},
    "Top": {"values", "places"},
    "Edges": {"sources", "targets", "weights"},
}
"""The tensors without which they compute nothing."""

Noted = list[tuple[str, Kept]]


class Folder:
    """Writes calls to an empty folder.

    Args:
        path: the folder, which is created if necessary.
        name: what the user called it, for errors.
    """

    def __init__(self, path: Path, name: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if next(path.glob("*.safetensors"), None) is not None or (path / INDEX).exists():
            raise ValueError(f"{name}={str(path)!r} already contains .safetensors files: give an empty folder.")
        self.path = path
        self._shared: dict[Any, tuple[Tensor, Path]] = {}
        self._count = 0

    def write(self, recipe: Recipe, tensors: Tensors) -> tuple[Recipe, dict[str, Path]]:
        """Writes the tensors of a call; returns the recipe to read them with, and the file of each.

        Tensors that calls share, such as a mask, are written once.
        """
        recipe, tensors = storable(recipe, tensors)
        path = self.path / f"{self._count:06d}.safetensors"
        files: dict[str, Path] = {}
        fresh: Tensors = {}
        for part, tensor in tensors.items():
            place = (part, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), version(tensor))
            if place in self._shared:
                files[part] = self._shared[place][1]
                continue
            # Inference tensors have no version that would tell whether it is still the same. The others stay alive, so
            # that their addresses stay their own: the last one of each part, which layers may share.
            if not tensor.is_inference():
                self._shared = {key: value for key, value in self._shared.items() if key[0] != part}
                self._shared[place] = (tensor, path)
            fresh[part], files[part] = tensor.contiguous().clone(), path  # tensors may share memory
        if fresh:
            write_file(path, pack_tensors(fresh))
            self._count += 1
        return recipe, files

    def finish(self, noted: Noted, missing: Iterable[Missing]) -> None:
        """Writes the list of the calls, whose tensors are in this folder."""
        self._shared.clear()
        write_index(self.path, noted, missing)


def storable(recipe: Recipe, tensors: Tensors) -> Captured:
    """A call as numbers and plain tensors: its weights, if they are smaller than what they are computed of."""
    plain = all(tensor.layout == torch.strided and not tensor.is_nested for tensor in tensors.values())
    if type(recipe) in RECIPES.values() and plain and not is_step(recipe, tensors):
        return Captured(recipe, apart(tensors) if type(recipe) is Projected else tensors)
    picked = {"picked": tensors["picked"]} if "picked" in tensors else {}
    return Captured(Given(), {"weights": weights_of(recipe, tensors), **picked})


def write_index(folder: Path, noted: Noted, missing: Iterable[Missing]) -> None:
    """Writes the list of calls whose tensors are in this folder."""
    calls = [
        {
            "path": module,
            "recipe": {"kind": type(kept.recipe).__name__, **asdict(kept.recipe)},  # type: ignore[call-overload]
            "files": {part: path.name for part, path in (kept.files or {}).items()},
            "run": kept.run,
            "key": kept.positions.key,
            "query": kept.positions.query,
        }
        for module, kept in noted
    ]
    told = [list(each) for each in missing]
    write_file(folder / INDEX, json.dumps({"format": FORMAT, "missing": told, "calls": calls}))


def read_index(folder: Path) -> tuple[Noted, list[Missing]]:
    """The calls in a folder, whose tensors are read when they are used; `ArtifactError` if it is damaged."""
    path = folder / INDEX
    if not path.is_file():
        raise FileNotFoundError(f"{folder} contains no trace: {INDEX} is missing. trace.save(folder) writes one.")
    index = JsonObject(read_json(path), str(path))
    index.take("format", int, least=FORMAT, most=FORMAT)
    missing = [_missing(index, each) for each in index.take_list("missing", list)]
    headers: dict[Path, set[str]] = {}
    noted: Noted = []
    for number, values in enumerate(index.take_list("calls", dict)):
        call = JsonObject(values, str(path), f"calls[{number}]")
        files = _files(folder, call)
        for part, file in files.items():
            if file not in headers:
                headers[file] = set(read_header(file))
            if part not in headers[file]:
                raise ArtifactError(f"{file} is damaged: {part} of calls[{number}] of {INDEX} is not in it.")
        recipe = _recipe(call.inner("recipe"))
        lacking = NEEDED[type(recipe).__name__] - files.keys()
        if lacking:
            raise call.wrong("files", f"lacks {' and '.join(sorted(lacking))}")
        kept = Kept(recipe, {})
        kept.spill(files)
        kept.run = call.take("run", int, least=0)
        query = call.take("query", int, type(None), least=0)
        kept.positions = Positions(call.take("key", int, least=0), query)
        noted.append((call.take("path", str), kept))
    return noted, missing


def _missing(index: JsonObject, values: list[Any]) -> Missing:
    if len(values) != 2 or not all(isinstance(each, str) for each in values):
        raise index.wrong("missing", "is not a list of paths and reasons")
    return Missing(*values)


def _files(folder: Path, call: JsonObject) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for part, name in call.take("files", dict).items():
        if not isinstance(name, str) or FILE.fullmatch(name) is None:
            raise call.wrong(f"files.{part}"[:80], "is not the name of a file such as 000000.safetensors")
        if not (folder / name).is_file():
            raise ArtifactError(f"{folder / name} is missing, which {INDEX} refers to.")
        files[part] = folder / name
    return files


def _recipe(values: JsonObject) -> Recipe:
    kind = values.take("kind", str)
    if kind not in RECIPES:
        raise values.wrong("kind", f"is {kind[:80]!r}, not one of {', '.join(RECIPES)}")
    chosen: Any = RECIPES[kind]
    types = {"scale": (float, type(None)), "causal": (bool,), "zero_key": (bool,), "norm_eps": (float,)}
    names = [field.name for field in fields(chosen)]
    values.only(["kind", *names])
    found = {}
    for name in names:
        kinds = types.get(name, (int,))
        found[name] = values.take(name, *kinds, **({"least": 0} if kinds == (int,) else {}))
    recipe: Recipe = chosen(**found)
    return recipe
