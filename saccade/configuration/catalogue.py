"""The content of the registries, read from the source: without torch, in a fraction of a second.

`saccade list`, `saccade show` and the first check of a configuration use it. It does not contain classes that users
register; a test compares it with the registries.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent

NO_DEFAULT = object()


@dataclass(frozen=True)
class Parameter:
    """One argument of a constructor."""

    name: str
    annotation: str
    default: Any
    """The value if it is a literal, else the text of the expression; `NO_DEFAULT` if there is none."""

    literal: bool = True

    @property
    def required(self) -> bool:
        return self.default is NO_DEFAULT

    def __str__(self) -> str:
        if self.required:
            return self.name
        return f"{self.name}={self.default!r}" if self.literal else f"{self.name}={self.default}"


@dataclass(frozen=True)
class Described:
    """A class as its source describes it."""

    name: str
    module: str
    doc: str
    parameters: dict[str, Parameter]
    usual_classes: dict[str, str] = field(default_factory=dict)
    """The classes of arguments that are given without one, where no default says so."""

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring."""
        return " ".join(self.doc.partition("\n\n")[0].split())

    @property
    def signature(self) -> str:
        """`Name(argument, argument=default)`."""
        return f"{self.name}({', '.join(map(str, self.parameters.values()))})"


@dataclass(frozen=True)
class Kind:
    """A registry as its source describes it."""

    name: str
    plural: str
    base: str
    """The name of the class that members derive from."""

    home: str
    """The module that members are imported from."""

    members: dict[str, Described] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Described | None:
        """The member of that short name, alias or dotted path."""
        found = self.members.get(self.aliases.get(name, name))
        if found is None and "." in name:
            paths = {
                path: m for m in self.members.values() for path in (f"{m.module}.{m.name}", f"{self.home}.{m.name}")
            }
            found = paths.get(name)
        return found


@functools.cache
def catalogue() -> dict[str, Kind]:
    """Every kind by its plural, with its members by short name."""
    kinds: dict[str, Kind] = {}
    found: list[tuple[str, str, list[str], Described]] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = _text(path)
        if " = Registry(" in text or ".register(" in text:
            for statement in _module(path).body:
                if isinstance(statement, ast.AnnAssign):
                    kinds |= _registry(statement)
                elif isinstance(statement, ast.ClassDef):
                    found += _registered(statement, path)
    for variable, short, aliases, member in sorted(found, key=lambda each: each[1]):
        kinds[variable].members[short] = member
        kinds[variable].aliases.update(dict.fromkeys(aliases, short))
    return {kind.plural: kind for kind in sorted(kinds.values(), key=lambda kind: kind.plural)}


@functools.cache
def described(path: str) -> Described:
    """The class at a dotted path inside Saccade, registered or not."""
    module, _, name = path.rpartition(".")
    file = _file(module)
    found = None if file is None else find_statement(name, file)
    if found is None or not isinstance(found[0], ast.ClassDef):
        raise LookupError(f"There is no class {path} in the source of Saccade.")
    return _describe(found[0], found[1])


def option_names(task: Described) -> list[str]:
    """The options of a task's predictions: the fields of its `options` dataclass."""
    file = _file(task.module)
    for statement, path in _lineage(None if file is None else find_statement(task.name, file)):
        for inner in statement.body:
            target = inner.targets[0] if isinstance(inner, ast.Assign) else getattr(inner, "target", None)
            if isinstance(target, ast.Name) and target.id == "options":
                kinds = _lineage(find_statement(ast.unparse(inner.value), path))  # type: ignore[attr-defined]
                return list(dict.fromkeys(name for kind, _ in kinds for name in _fields(kind)))
    return []


def _lineage(found: tuple[ast.ClassDef | ast.Assign, Path] | None) -> Iterator[tuple[ast.ClassDef, Path]]:
    """A class and those that it inherits from, as far as they are part of Saccade."""
    if found is not None and isinstance(found[0], ast.ClassDef):
        yield found[0], found[1]
        for base in found[0].bases:
            name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            yield from _lineage(find_statement(name, found[1]) if name.isidentifier() else None)


def _fields(statement: ast.ClassDef) -> Iterator[str]:
    """The fields of a dataclass that its own body declares."""
    for inner in statement.body:
        if isinstance(inner, ast.AnnAssign) and not ast.unparse(inner.annotation).startswith("ClassVar"):
            yield ast.unparse(inner.target)


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _module(path: Path) -> ast.Module:
    """A file without the bodies of its functions, which take most of the time to parse."""
    try:
        return ast.parse(_outline(_text(path)))
    except SyntaxError:  # a string in a function has lines at the margin
        return ast.parse(_text(path))


def _outline(text: str) -> str:
    """A source with `...` for the body of every function, judged by its indentation alone."""
    lines: list[str] = []
    margin = signature = -1  # of the function whose body, or whose signature, is being read
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if margin >= 0 and (not line or indent > margin):
            continue
        margin = -1
        if line.lstrip().startswith("def "):
            signature = -1 if line.endswith("...") else indent
        lines.append(line)
        if signature == indent and line.endswith(":"):
            lines.append(f"{' ' * indent} ...")
            margin, signature = indent, -1
    return "\n".join(lines)


def _file(module: str) -> Path | None:
    inner = PACKAGE.parent.joinpath(*module.split("."))
    return next((path for path in (inner.with_suffix(".py"), inner / "__init__.py") if path.is_file()), None)


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _registry(statement: ast.AnnAssign) -> dict[str, Kind]:
    """`scores: Registry[Score] = Registry("score", base=Score, home="saccade.scores")`."""
    call = statement.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Registry"):
        return {}
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    name = ast.literal_eval(call.args[0])
    plural = ast.literal_eval(options["plural"]) if "plural" in options else f"{name}s"
    base = ast.unparse(options["base"]).rpartition(".")[2]
    return {ast.unparse(statement.target): Kind(name, plural, base, ast.literal_eval(options["home"]))}


def _registered(statement: ast.ClassDef, path: Path) -> Iterator[tuple[str, str, list[str], Described]]:
    """The variable of the registry, the short name and the aliases under which a class is registered."""
    for call in statement.decorator_list:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "register":
            aliases: list[str] = next((ast.literal_eval(k.value) for k in call.keywords if k.arg == "aliases"), [])
            variable = ast.unparse(call.func.value)
            yield variable, ast.literal_eval(call.args[0]), aliases, _describe(statement, path)


def _describe(statement: ast.ClassDef, path: Path) -> Described:
    doc = inspect.cleandoc(ast.get_docstring(statement, clean=False) or "")
    return Described(statement.name, _dotted(path), doc, _parameters(statement, path), _usual_classes(statement))


def _usual_classes(statement: ast.ClassDef) -> dict[str, str]:
    for inner in statement.body:
        if isinstance(inner, ast.Assign) and ast.unparse(inner.targets[0]) == "usual_classes":
            found: dict[str, str] = ast.literal_eval(inner.value)
            return found
    return {}


def _parameters(statement: ast.ClassDef, path: Path) -> dict[str, Parameter]:
    """Those of the class's constructor, or of the one that it inherits."""
    for owner, home in _lineage((statement, path)):
        for inner in owner.body:
            if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
                found = dict(_arguments(inner.args, home))
                if found or owner is statement:
                    return found
    return {}


def _arguments(given: ast.arguments, path: Path) -> Iterator[tuple[str, Parameter]]:
    positional = [*given.posonlyargs, *given.args][1:]
    defaults: list[ast.expr | None] = [*[None] * len(positional), *given.defaults][len(given.defaults) :]
    for argument, default in zip([*positional, *given.kwonlyargs], [*defaults, *given.kw_defaults], strict=True):
        annotation = "" if argument.annotation is None else ast.unparse(_spelt_out(argument.annotation, path))
        yield argument.arg, Parameter(argument.arg, annotation, *_default(default))


def _spelt_out(annotation: ast.expr, path: Path) -> ast.expr:
    """An annotation with the words that an alias such as `EncoderName` stands for."""

    class SpellOut(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            found = find_statement(node.id, path) if node.id[:1].isupper() else None
            if found is None or not isinstance(found[0], ast.Assign):
                return node
            value = found[0].value
            literal = isinstance(value, ast.Subscript) and ast.unparse(value.value) == "Literal"
            return value if literal else node

    changed: ast.expr = SpellOut().visit(annotation)
    return changed


def _default(default: ast.expr | None) -> tuple[Any, bool]:
    if default is None:
        return NO_DEFAULT, True
    try:
        return ast.literal_eval(default), True
    except ValueError:
        return ast.unparse(default), False


@functools.cache
def find_statement(name: str, path: Path) -> tuple[ast.ClassDef | ast.Assign, Path] | None:
    """The class or alias that a module knows by a name: its own, or imported from another module of Saccade."""
    for statement in _module(path).body:
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return statement, path
        if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == [name]:
            return statement, path
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("saccade"):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    file = _file(statement.module or "")
                    return None if file is None else find_statement(alias.name, file)
    return None


def classes_in(annotation: str) -> list[Kind]:
    """The kinds whose base class an annotation names."""
    words = set(re.findall(r"\w+", annotation))
    return [kind for kind in catalogue().values() if kind.base in words and kind.base != "Module"]
