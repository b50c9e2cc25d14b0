"""Configurations as files and on the command line."""

from __future__ import annotations

import copy
import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saccade.configuration.catalogue import catalogue
from saccade.configuration.errors import ConfigError, shown
from saccade.configuration.yaml_files import MOST_DEPTH, load_yaml, parse_yaml, read_text

FOLDER = Path(__file__).parent.parent / "configs"

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
"""How the names of data files end."""


def shipped() -> dict[str, Path]:
    """The configurations that come with Saccade: `translation/rnnsearch` and so on."""
    return {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in sorted(FOLDER.glob("**/*.yaml"))}


def find_config(name: str | os.PathLike[str]) -> Path:
    """The file at that path, or the shipped configuration of that name (`configs/` and `.yaml` are optional)."""
    path = Path(name)
    if "\0" in str(name):
        raise ConfigError(f"{str(name)!r} is not the name of a file.")
    if path.exists() and not path.is_dir():
        return path
    short = path.with_suffix("") if path.suffix in (".yaml", ".yml") else path
    short = short.relative_to("configs") if short.parts[:1] == ("configs",) else short
    if short.as_posix() in shipped():
        return shipped()[short.as_posix()]
    # Compare the last parts only: a shared folder would make all names alike.
    near = [each for each in shipped() if difflib.get_close_matches(short.name, [Path(each).name], cutoff=0.75)]
    same = [each for each in near if Path(each).name == short.name]
    close = same if short.parent == Path() else []
    close = close or difflib.get_close_matches(short.as_posix(), near, n=1, cutoff=0.0) or _beside(path)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ConfigError(
        f"There is no file {str(name)!r}, and no configuration of that name.{hint} `saccade list configs` lists the "
        "configurations that come with Saccade."
    )


def _beside(path: Path) -> list[str]:
    """The YAML file of a similar name in the same folder, if there is one."""
    try:
        files = [each.name for each in path.parent.iterdir() if each.suffix in (".yaml", ".yml")]
    except OSError:
        return []
    close = difflib.get_close_matches(path.name, files, n=1, cutoff=0.75)
    return [str(path.parent / name) for name in close]


def read_config(name: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a YAML file, unchecked."""
    path = find_config(name)
    if path.suffix.lower() in TABLES:
        raise ConfigError(
            f"{path} is data, not a configuration: saccade train CONFIG --data.train {path}. `saccade list configs` "
            "lists the configurations that come with Saccade."
        )
    found = parse_yaml(read_text(path), str(path))
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must have sections such as `model:` and `trainer:`.")
    return found


def write_config(config: Mapping[str, Any], *, heading: str = "") -> str:
    """A configuration as YAML."""
    yaml = load_yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[name-defined,misc] # PyYAML is imported when needed, as Any
        def ignore_aliases(self, data: Any) -> bool:
            return True  # `read_config` refuses them

    text: str = yaml.dump(dict(config), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"# {line}\n" for line in heading.splitlines()) + text


def override(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with changes such as `{"model.hidden_dim": 64}` applied; the original is left alone.

    Text that looks like a YAML mapping or list is read as one: `{"trainer.schedule": "{class: cosine, warmup: 100}"}`.
    A mapping replaces single arguments of a part. If it names another class, the old arguments are dropped, as they
    are for a bare name. Parts are set before their arguments, whatever the order in which they are given.
    """
    changed = copy.deepcopy(dict(config))
    for key in sorted(changes, key=lambda name: name.removesuffix(".class").count(".")):
        value = _as_written(key, changes[key])
        if key.endswith(".class"):
            key, value = key.removesuffix(".class"), {"class": value}
        place = changed
        *outer, last = key.split(".")
        if len(outer) >= MOST_DEPTH:
            raise ConfigError(f"{shown(key)} is nested deeper than {MOST_DEPTH} levels.")
        for name in outer:
            place[name] = place = _as_mapping(place.get(name))
        before = place.get(last)
        old = _as_mapping(before) if not isinstance(before, str) or not outer or _is_class(before) else {}
        part = not outer or "class" in old
        if part and isinstance(value, Mapping) and value.get("class", old.get("class")) == old.get("class"):
            value = {**old, **value}
        place[last] = value
    return changed


def _is_class(name: str) -> bool:
    """Whether a text in a configuration names a class, and is not a word such as `balanced`."""
    return "." in name or any(kind.find(name) is not None for kind in catalogue().values())


def _as_mapping(part: Any) -> dict[str, Any]:
    """`selection: entmax` as `selection: {class: entmax}`, which can get arguments."""
    if isinstance(part, str):
        return {"class": part}
    return part if isinstance(part, dict) else {}


def _as_written(key: str, value: Any) -> Any:
    """A mapping or a list on the command line, read as YAML; anything else as it is, such as the template `{} <{}>`."""
    if not isinstance(value, str) or not value.strip().startswith(("{", "[")) or re.match(r"\s*\{\}\s*\S", value):
        return value
    try:
        return parse_yaml(value, f"{key}: {shown(value)}")
    except ConfigError as error:
        raise ConfigError(f"{error}; write it as '{{a: 1, b: 2}}'.") from None
