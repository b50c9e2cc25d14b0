"""Untrusted YAML: bounded in size and depth, without aliases, tags or repeated keys."""

from __future__ import annotations

import functools
import importlib
import os
import stat
from pathlib import Path
from typing import Any

from saccade.configuration.errors import ConfigError

MOST_BYTES = 256 * 1024
MOST_NODES = 20_000
MOST_DEPTH = 32
MOST_DIGITS = 40

PLAINLY = {
    r"found character '\t'": "a tab, where YAML indents with spaces",
    "expected <block end>": "this line does not fit those above; indent the lines of one section equally",
    "mapping values are not allowed": "this `:` does not fit here; indent the lines of one section equally, and quote "
    "text that contains `: `",
    "could not find expected ':'": "this line or the one above has no `:`; write `key: value`",
    "expected '<document start>'": "this line does not belong to a section such as `model:`",
}
"""What is probably wrong, by how PyYAML's messages begin."""


def read_text(path: Path) -> str:
    """The text of a file that is small enough to be a configuration; pipes and devices are rejected."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ConfigError(f"{path} is not a regular file: a configuration must not be a folder, pipe or device.")
    with path.open("rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ConfigError(f"{path} is larger than {MOST_BYTES // 1024} kB: that is not a configuration.")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path} is not UTF-8 text: line {line} has the byte {found[error.start]:#04x}.") from None


def parse_yaml(text: str, name: str) -> Any:
    """The plain data that a YAML text describes: mappings, lists, text, numbers, true, false and null."""
    yaml = load_yaml()
    if len(text) > MOST_BYTES:
        raise ConfigError(f"{name} is longer than {MOST_BYTES // 1024} kB.")
    try:
        _check_events(yaml, text, name)
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        raise ConfigError(f"{name} is not YAML: {_problem(error)}") from None


def load_yaml() -> Any:
    """PyYAML, or an error that says what to install."""
    try:
        return importlib.import_module("yaml")
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        message = 'Configurations need the library PyYAML: pip install "saccade[train]"'
        raise ModuleNotFoundError(message, name="yaml") from None


def _problem(error: Any) -> str:
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if problem is None:
        return " ".join(str(error).split())
    plain = next((words for start, words in PLAINLY.items() if problem.startswith(start)), str(problem))
    return plain if mark is None else f"{plain} (line {mark.line + 1}, column {mark.column + 1})"


def _check_events(yaml: Any, text: str, name: str) -> None:
    """Checks the YAML event by event, before anything is built, to defuse YAML bombs."""
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(f"{name}, line {line}: aliases (*{event.anchor}) are not allowed; write the value again.")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ConfigError(f"{name}, line {line}: there is a second document (---); keep one.")
        if getattr(event, "tag", None) is not None:
            raise ConfigError(f"{name}, line {line}: tags ({event.tag}) are not allowed; a class is `class: name`.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > MOST_DEPTH:
            raise ConfigError(f"{name}, line {line}: nested deeper than {MOST_DEPTH} levels.")
        if nodes > MOST_NODES:
            raise ConfigError(f"{name}, line {line}: more than {MOST_NODES} values.")


@functools.cache
def _loader() -> Any:
    """PyYAML's safe loader without dates, and with an error for repeated keys, where it would keep the last."""
    yaml = load_yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc] # PyYAML is imported when needed, as Any
        yaml_implicit_resolvers = {  # noqa: RUF012 (PyYAML's own shape)
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise _error("a key must be a name", key)
                if key.value in seen:
                    raise _error(f"the key {key.value[:80]!r} appears twice", key)
                seen.add(key.value)
            mapping: dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

        def construct_number(self, node: Any) -> int:
            if len(node.value) > MOST_DIGITS:
                raise _error(f"a whole number of {len(node.value)} characters is too long", node)
            try:
                return int(self.construct_yaml_int(node))
            except ValueError:  # such as 0x_
                raise _error(f"{node.value!r} is not a whole number", node) from None

    def _error(problem: str, node: Any) -> Exception:
        error: Exception = yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return error

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_number)
    return Loader
