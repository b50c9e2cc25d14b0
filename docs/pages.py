"""The reference pages: one per registered member and one per other public name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import saccade
from docstrings import markdown, parse, render
from saccade.registry import Registry, constructor_parameters, nearest

KINDS: dict[str, tuple[Registry[Any], str]] = {
    "scores": (saccade.scores.scores, "How well does this query match this key?"),
    "selections": (saccade.selections.selections, "What distribution over positions follows from the scores?"),
    "aggregations": (saccade.aggregations.aggregations, "What is read from the values?"),
}
HEART = ("Attention", "Memory", "Reading", "State", "MultiHead")


@dataclass(frozen=True)
class Page:
    """One generated page."""

    path: str
    title: str
    text: str


@cache
def members() -> dict[str, list[Page]]:
    """An index for each kind, followed by a page for each member."""
    pages: dict[str, list[Page]] = {}
    for kind, (registry, question) in KINDS.items():
        base = importlib.import_module(f"saccade.{kind}.base")
        own = [_member(kind, name, member) for name, member in registry.items()]
        rows = [
            f"| [{member.__name__}]({name}.md)<br>`{name}` | {_cell(parse(member).summary)} |"
            for name, member in registry.items()
        ]
        index = "\n".join(
            [
                f"# {kind.capitalize()}",
                f"\n{question}\n",
                "| class, short name | what it does |",
                "| --- | --- |",
                *rows,
                f"\nBy its short name: `saccade.{kind}.create(name, ...)`.",
                "\n## Write your own\n",
                render(parse(getattr(base, registry.kind.capitalize())), level=3),
            ]
        )
        pages[kind] = [Page(f"{kind}/index.md", kind.capitalize(), index), *own]
    return pages


def path_of(class_name: str) -> str:
    """The page of a class."""
    paths = {member.__name__: f"{kind}/{name}.md" for kind, (r, _) in KINDS.items() for name, member in r.items()}
    paths |= {name: f"heart/{name}.md" for name in HEART}
    if class_name not in paths:
        raise KeyError(f"There is no page for {class_name!r}.{nearest(class_name, paths)}")
    return paths[class_name]


def heart() -> list[Page]:
    """The core classes from which everything is composed."""
    return [
        Page(f"heart/{name}.md", name, _class(getattr(saccade, name), f"from saccade import {name}")) for name in HEART
    ]


def modules() -> list[Page]:
    """Public modules whose functions and classes share a page."""
    shared = ("masks", "distributions", "structures", "losses")
    names = [name for name in shared if importlib.util.find_spec(f"saccade.{name}")]
    return [_module(name, importlib.import_module(f"saccade.{name}")) for name in names]


def _member(kind: str, name: str, member: type) -> Page:
    lines = [_class(member, f"from saccade.{kind} import {member.__name__}", name=name)]
    module = importlib.import_module(member.__module__)
    package = importlib.import_module(f"saccade.{kind}")
    for public in package.__all__:
        function = getattr(package, public)
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            lines.append("## As a function\n")
            lines.append(_function(function, f"from saccade.{kind} import {public}"))
    return Page(f"{kind}/{name}.md", name, "\n".join(lines))


def _class(member: type, line: str, *, name: str | None = None) -> str:
    """Title, signature, docstring, and the methods with their own docstrings."""
    lines = [f"# {member.__name__}\n"]
    if name is not None:
        lines.append(f"Short name: `{name}`\n")
    lines.append(f"```python\n{line}\n\n{signature(member)}\n```\n")
    lines.append(render(parse(member)) + "\n")
    methods = [
        (method, thing)
        for method, thing in vars(member).items()
        if not method.startswith("_") and parse(getattr(thing, "fget", thing)).summary and _is_method(thing)
    ]
    if methods:
        lines.append("## Methods\n")
    for method, thing in methods:
        lines.append(f"### {method}\n")
        if isinstance(thing, property):
            lines.append(f"{render(parse(thing.fget), level=4)}\n")
        else:
            lines.append(_function(getattr(thing, "__func__", thing), None))
    return "\n".join(lines)


def _is_method(thing: object) -> bool:
    return isinstance(thing, property | classmethod | staticmethod) or inspect.isfunction(thing)


def _function(function: Any, line: str | None) -> str:
    head = "" if line is None else f"{line}\n\n"
    return f"```python\n{head}{signature(function)}\n```\n\n{render(parse(function), level=4)}\n"


def _module(name: str, module: ModuleType) -> Page:
    intro = inspect.getdoc(module) or ""
    sentence, _, rest = intro.partition("\n\n")
    lines = [f"# {name.capitalize()}\n", f"{markdown(sentence)}\n", _verbatim(rest)]
    public = getattr(module, "__all__", None) or [
        key
        for key, thing in vars(module).items()
        if not key.startswith("_")
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    ]
    things = {key: getattr(module, key) for key in public}
    for key, thing in sorted(things.items(), key=lambda item: not _is_base(item[1], list(things.values()))):
        if inspect.isclass(thing):
            lines.append(f"## {key}\n\n```python\n{signature(thing)}\n```\n\n{render(parse(thing), level=3)}\n")
            documented = [
                (method, parse(getattr(body, "fget", None) or getattr(body, "func", body)))
                for method, body in vars(thing).items()
                if not method.startswith("_") and (_is_method(body) or hasattr(body, "func"))
            ]
            if any(doc.summary for _, doc in documented):
                lines.append("**Methods**\n")
            lines += [f"- `{method}`: {markdown(doc.summary)}" for method, doc in documented if doc.summary]
            lines.append("")
        elif inspect.isfunction(thing):
            lines.append(f"## {key}\n\n{_function(thing, None)}")
    return Page(f"{name}.md", name.capitalize(), "\n".join(lines))


def _is_base(thing: Any, others: list[Any]) -> bool:
    """Whether other classes on the page derive from this one, which is then shown first."""
    return any(inspect.isclass(other) and other is not thing and thing in other.__mro__ for other in others)


def _verbatim(text: str) -> str:
    """Paragraphs of a module docstring; indented ones become Python blocks."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return "\n\n".join(
        f"```python\n{inspect.cleandoc(block)}\n```" if block.startswith("    ") else markdown(block)
        for block in blocks
    )


def signature(thing: Any) -> str:
    """`Name(argument: type = default)`, on one line if it fits, otherwise with one argument per line."""
    found = inspect.signature(thing)
    listed = constructor_parameters(thing) if inspect.isclass(thing) else found.parameters
    parameters = [p for p in listed.values() if p.name not in ("self", "cls")]
    shown: list[str] = []
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and "*" not in shown and not inspect.isclass(thing):
            shown.append("*")
        kind = "" if p.annotation is p.empty else f": {_type(p.annotation)}"
        equals = " = " if kind else "="
        shown.append(f"{p.name}{kind}" + ("" if p.default is p.empty else f"{equals}{p.default!r}"))
    result = found.return_annotation
    arrow = "" if inspect.isclass(thing) or result is found.empty else f" -> {_type(result)}"
    line = f"{thing.__name__}({', '.join(shown)}){arrow}"
    if len(line) <= 88:
        return line
    return f"{thing.__name__}(\n" + "".join(f"    {each},\n" for each in shown) + f"){arrow}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    for long in ("torch.Tensor", "torch.nn.modules.module.Module"):
        text = text.replace(long, long.rpartition(".")[2])
    parts = text.split("saccade.")
    return parts[0] + "".join(_last_name(part) for part in parts[1:])


def _last_name(dotted: str) -> str:
    """`scores.base.Score | None` -> `Score | None`."""
    head, *rest = dotted.split(" ", 1)
    return " ".join([head.rpartition(".")[2], *rest])


def _cell(text: str) -> str:
    return markdown(text).replace("|", r"\|")
