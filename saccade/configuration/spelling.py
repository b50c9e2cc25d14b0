"""The names in a configuration, checked against the catalogue: a misspelt one is found without importing torch."""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from saccade.configuration.catalogue import Described, Kind, catalogue, classes_in, described, option_names
from saccade.configuration.classes import no_argument, one_of, unknown_member, wrong_value
from saccade.configuration.errors import ConfigError, refuse, shown
from saccade.configuration.hints import NAMES
from saccade.configuration.scalars import BAD, WHOLE_NUMBERS, scalar
from saccade.configuration.sections import SECTIONS, sizes_of_data
from saccade.configuration.yaml_files import MOST_DEPTH
from saccade.registry import closest, nearest

LISTS = ("Sequence", "list", "tuple")
MAPPINGS = ("Mapping", "dict")

SCALARS = {"int": int, "float": float, "bool": bool, "None": type(None)}

OPEN = {"Any", "Path", "bool", "float", "int", "str"}
"""The annotations that take any text, or text that may be a number or yes or no."""


def check_spelling(config: Mapping[str, Any]) -> None:
    """Raises a `ConfigError` that lists every misspelt section, class and argument, at every depth.

    Wrong words and numbers are in the same list. If nothing else is wrong, they are left to `Plan`, which lists them
    with what only constructors know, such as ranges. Classes given by dotted path are left to it as well.
    """
    found = list(wrong_names(config))
    if any(problem.names for problem in found):
        refuse([problem.text for problem in found])


class Problem(NamedTuple):
    """What is wrong with a key or its value."""

    text: str
    names: bool = True
    """Whether a section, a class or an argument is misspelt, rather than a value being wrong."""


def unknown_sections(config: Mapping[str, Any]) -> Iterator[str]:
    """The problem of each section that does not exist."""
    for name in config:
        if name not in SECTIONS:
            yield f"There is no section {name!r}.{nearest(str(name), SECTIONS)}"


def wrong_names(config: Mapping[str, Any]) -> Iterator[Problem]:
    """Everything that is wrong with a configuration, as far as the catalogue tells."""
    yield from map(Problem, unknown_sections(config))
    for name, section in SECTIONS.items():
        given = config.get(name)
        if section.kind is not None:
            yield from _class(catalogue()[section.kind], given, name, section.usual, hide_sizes=name == "model")
        elif isinstance(given, Mapping) and "class" not in given and section.usual is not None:
            usual = described(section.usual)
            known = {n: v for n, v in given.items() if name != "data" or not may_be_role(n, usual.parameters, config)}
            yield from _arguments(usual, usual.name, known, name)
    task, trainer = config.get("task"), config.get("trainer")
    named = task.get("class", SECTIONS["task"].usual) if isinstance(task, Mapping) else task or SECTIONS["task"].usual
    found = catalogue()["tasks"].find(named) if isinstance(named, str) else None
    if found is not None:
        yield from _misspelt_roles(found, task if isinstance(task, Mapping) else {}, config)
    if found is not None and isinstance(trainer, Mapping):
        yield from _misspelt_metric(found, trainer.get("metric"))
        yield from wrong_options(trainer.get("validate_options"), option_names(found))


def _misspelt_roles(found: Described, task: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Problem]:
    """The problem of each column in the data section whose role is nearly one that the task has."""
    data, roles = config.get("data"), set[str]()
    for name, parameter in found.parameters.items():
        if "Field" in parameter.annotation:
            given = task.get(name)
            several = parameter.annotation.startswith(MAPPINGS)
            roles |= {*map(str, given)} if several and isinstance(given, Mapping) else set() if several else {name}
    arguments = described(str(SECTIONS["data"].usual)).parameters
    for name in data if isinstance(data, Mapping) else ():
        known = name in arguments or name in roles or not may_be_role(name, arguments, config)
        if not known and closest(name, roles) is not None:
            yield Problem(no_role(name, [*arguments, *roles]), names=False)


def no_role(name: str, choices: Collection[str]) -> str:
    """The message for a name in the data section that is neither an argument nor a role."""
    return f"data has no argument {shown(name)}, and the task no column of that name.{nearest(name, choices)}"


def wrong_options(given: Any, known: Collection[str]) -> Iterator[Problem]:
    """The problem of each option of validation that predictions of the task do not have."""
    for name in given if isinstance(given, Mapping) else ():
        if name not in known:
            choices = nearest(str(name), known) if known else ""
            text = f"trainer.validate_options: predictions of this task have no option {shown(name)}.{choices}"
            yield Problem(text, names=False)


def _misspelt_metric(found: Described, metric: Any) -> Iterator[Problem]:
    """The problem of a `trainer.metric` that no metric of the task is called, chosen or not."""
    if isinstance(metric, str) and "metrics" in found.parameters:
        listed = _inside(list(_members(_parsed(found.parameters["metrics"].annotation))), LISTS)
        known = ["loss", *(word for inner in listed for word in _words(list(_members(inner[0]))))]
        if metric not in known:
            yield Problem(no_metric(metric, known), names=False)


def no_metric(name: str, known: Collection[str]) -> str:
    """The message for a `trainer.metric` that the task does not have."""
    return f"trainer.metric: the task has no metric {shown(name)}.{nearest(name, known)}"


def may_be_role(name: Any, arguments: Collection[str], config: Mapping[str, Any]) -> bool:
    """Whether a name in the data section may be a role of the task, and not a misspelt argument."""
    task = config.get("task")
    inputs = task.get("inputs") if isinstance(task, Mapping) else None
    if isinstance(inputs, Mapping) and name in inputs:
        return True
    return isinstance(name, str) and not difflib.get_close_matches(name[:100], arguments, n=1)


def _class(
    kind: Kind,
    given: Any,
    where: str,
    usual: str | None,
    *,
    words: Collection[str] = (),
    hide_sizes: bool = False,
    depth: int = 0,
) -> Iterator[Problem]:
    name = given if isinstance(given, str) else given.get("class", usual) if isinstance(given, Mapping) else None
    if not isinstance(name, str):
        return
    member = kind.find(name)
    if member is None:
        if "." in name:
            return
        known = [*kind.members, *kind.aliases]
        yield Problem(unknown_member(where, kind.name, name, [*known, *words]))
        meant = closest(name, known)
        member = None if meant is None else kind.find(meant)
    if member is not None and isinstance(given, Mapping):
        short = next(short for short, each in kind.members.items() if each is member)
        yield from _arguments(member, short, given, where, hide_sizes=hide_sizes, depth=depth)


def _arguments(
    member: Described, known: str, given: Mapping[Any, Any], where: str, *, hide_sizes: bool = False, depth: int = 0
) -> Iterator[Problem]:
    for name, value in given.items():
        parameter = member.parameters.get(name) if isinstance(name, str) else None
        if parameter is not None:
            default = parameter.default if isinstance(parameter.default, str) and parameter.literal else None
            usual = member.usual_classes.get(parameter.name, default)
            yield from _values(_parsed(parameter.annotation), value, f"{where}.{name}", usual, depth + 1)
        elif name != "class":
            required = {n: p.required for n, p in member.parameters.items()}
            hidden = sizes_of_data(required) if hide_sizes else set()
            yield Problem(no_argument(where, known, name, [n for n in required if n not in hidden]))


def _values(annotation: ast.expr, value: Any, where: str, usual: str | None, depth: int) -> Iterator[Problem]:
    """Those of a class or a word, of each in a list, or of each in a mapping."""
    members = list(_members(annotation))
    if depth > MOST_DEPTH:
        return
    words = _words(members)
    lists = list(_inside(members, LISTS))
    if isinstance(value, str) and any(_words(list(_members(inner[0]))) for inner in lists):
        value = [word.strip() for word in value.split(",")]  # as on the command line: bleu,chrf
    if isinstance(value, list | tuple):
        for inner in lists:
            for number, each in enumerate(value):
                yield from _values(inner[0], each, f"{where}[{number}]", None, depth + 1)
        return
    mappings = list(_inside(members, MAPPINGS))
    if isinstance(value, Mapping) and mappings:
        for name, each in value.items():
            yield from _values(mappings[0][-1], each, f"{where}.{name}", None, depth + 1)
        return
    kind = next((kind for member in members for kind in classes_in(ast.unparse(member))), None)
    if isinstance(value, str) and (value in map(str, words) or value == "null"):
        return
    if kind is not None:
        yield from _class(kind, value, where, usual, words=words, depth=depth)
    elif isinstance(value, str) and words and not OPEN & {ast.unparse(member) for member in members}:
        wanted = one_of(words) + " or a mapping" * bool(mappings) + " or null" * ("None" in map(ast.unparse, members))
        yield Problem(wrong_value(where, wanted, value, [str(word) for word in words]), names=False)
    elif isinstance(value, str) and {*map(ast.unparse, members)} <= SCALARS.keys():
        yield from _not_a_number(tuple(SCALARS[ast.unparse(member)] for member in members), value, where)


def _not_a_number(kinds: tuple[Any, ...], value: str, where: str) -> Iterator[Problem]:
    """The problem of text where a number, yes or no is wanted; whether a number is too large is not checked here."""
    with contextlib.suppress(ConfigError):
        if scalar(kinds, value, WHOLE_NUMBERS) is BAD:
            yield Problem(wrong_value(where, " or ".join(NAMES[kind] for kind in kinds), value), names=False)


@functools.cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation or "Any", mode="eval").body


def _members(annotation: ast.expr) -> Iterator[ast.expr]:
    """Those of a union, or the annotation itself."""
    if isinstance(annotation, ast.BinOp):
        yield from _members(annotation.left)
        yield from _members(annotation.right)
    else:
        yield annotation


def _words(members: list[ast.expr]) -> list[Any]:
    """Those that `Literal` lists."""
    return [word for choices in _inside(members, ["Literal"]) for word in map(ast.literal_eval, choices)]


def _inside(members: list[ast.expr], names: Collection[str]) -> Iterator[list[ast.expr]]:
    """What stands in the brackets of `list[...]`, and of others of these names."""
    for member in members:
        if isinstance(member, ast.Subscript) and ast.unparse(member.value) in names:
            yield member.slice.elts if isinstance(member.slice, ast.Tuple) else [member.slice]
