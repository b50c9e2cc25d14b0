"""Configurations as files and on the command line."""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saccade.configuration.errors import ConfigError
from saccade.data.extra import required

FOLDER = Path(__file__).parent.parent / "configs"


def shipped() -> dict[str, Path]:
    """The configurations that come with Saccade: `translation/rnnsearch` and so on."""
    return {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in sorted(FOLDER.glob("**/*.yaml"))}


def find_config(name: str | os.PathLike[str]) -> Path:
    """The file of that path, or the shipped configuration of that name (`configs/` and `.yaml` may be left out)."""
    path = Path(name)
    if path.is_file():
        return path
    short = path.with_suffix("") if path.suffix in (".yaml", ".yml") else path
    short = short.relative_to("configs") if short.parts[:1] == ("configs",) else short
    if short.as_posix() in shipped():
        return shipped()[short.as_posix()]
    # Of the names alone: a folder that many share would make them all alike.
    near = [each for each in shipped() if difflib.get_close_matches(short.name, [Path(each).name], cutoff=0.75)]
    close = difflib.get_close_matches(short.as_posix(), near, n=1, cutoff=0.0)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ConfigError(
        f"There is no file {str(name)!r}, and no configuration of that name.{hint} `saccade list configs` shows those "
        "that come with Saccade."
    )


def read_config(name: str | os.PathLike[str]) -> dict[str, Any]:
    """What a YAML file says, unchecked."""
    yaml = required("yaml")
    path = find_config(name)
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_loader(yaml))
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text.") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must hold sections such as `model:` and `trainer:`.")
    return found


def write_config(config: Mapping[str, Any], *, heading: str = "") -> str:
    """A configuration as YAML."""
    text: str = required("yaml").safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"# {line}\n" for line in heading.splitlines()) + text


def override(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with `{"model.hidden_dim": 64}` and the like set; nothing that was given is changed.

    A text that YAML reads as a mapping or a list is one: `{"trainer.schedule": "{class: cosine, warmup: 100}"}`. A
    mapping replaces single arguments of a part, unless it names another class, which begins without the arguments of
    the old one, as a mere name does. Parts are set before their arguments, in whatever order they are given.
    """
    changed = copy.deepcopy(dict(config))
    for key in sorted(changes, key=lambda name: name.removesuffix(".class").count(".")):
        value = _as_written(key, changes[key])
        if key.endswith(".class"):
            key, value = key.removesuffix(".class"), {"class": value}
        place = changed
        *outer, last = key.split(".")
        for name in outer:
            place[name] = place = _as_mapping(place.get(name))
        old = _as_mapping(place.get(last))
        part = not outer or "class" in old
        if part and isinstance(value, Mapping) and value.get("class", old.get("class")) == old.get("class"):
            value = {**old, **value}
        place[last] = value
    return changed


def _as_mapping(part: Any) -> dict[str, Any]:
    """`selection: entmax` as `selection: {class: entmax}`, which can get arguments."""
    if isinstance(part, str):
        return {"class": part}
    return part if isinstance(part, dict) else {}


def _as_written(key: str, value: Any) -> Any:
    """What YAML makes of a mapping or a list on the command line; anything else as it is."""
    if not isinstance(value, str) or not value.strip().startswith(("{", "[")):
        return value
    yaml = required("yaml")
    try:
        return yaml.load(value, Loader=_loader(yaml))
    except yaml.YAMLError as error:
        raise ConfigError(f"{key}: {value!r} is not YAML ({error.problem}); write it as '{{a: 1, b: 2}}'.") from None


def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader, which would let the last of two equal keys win; this one refuses."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML is imported when needed, as Any
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} is there twice", key.start_mark
                    )
                seen.add(key.value)
            mapping: dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

    return Loader
