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
from docstrings import Docstring, arguments, markdown, parse, render
from saccade.configuration.catalogue import catalogue
from saccade.configuration.files import shipped
from saccade.registry import constructor_parameters, nearest

KINDS: dict[str, str] = {
    "tasks": "What is learned from the data?",
    "fields": "What is one column of the data: a text, a label, a recording?",
    "readers": "Where do rows come from?",
    "tokenisers": "How is a text split into pieces?",
    "encoders": "What does a picture become before attention reads it?",
    "backbones": "Which pretrained network describes pictures?",
    "vectors": "Where do the embeddings of words start?",
    "models": "What reads the inputs and makes the predictions?",
    "heads": "How does a decoder's state become a word: generated, copied, looked up?",
    "optimisers": "How are gradients turned into updates?",
    "schedules": "How does the learning rate change during training?",
    "engines": "Where is a bulk prediction worked on?",
    "scores": "How well does this query match this key?",
    "selections": "What distribution over positions follows from the scores?",
    "aggregations": "What is read from the values?",
    "formats": "How is a trained model written for other programs?",
    "history": "What does a score know about earlier steps?",
}
"""Every kind of member with the question that it answers."""

HEART = ("Attention", "Memory", "Reading", "State", "MultiHead")


@dataclass(frozen=True)
class Page:
    """One generated page."""

    path: str
    title: str
    text: str


@cache
def classes(kind: str) -> dict[str, Any]:
    """The members of a kind by short name."""
    described = catalogue()[kind].members
    return {name: getattr(importlib.import_module(d.module), d.name) for name, d in described.items()}


@cache
def members() -> dict[str, list[Page]]:
    """An index for each kind, followed by a page for each member."""
    return {
        kind: [_index(kind), *(_member(kind, name, m) for name, m in classes(kind).items())]
        for kind in KINDS
        if classes(kind)
    }


def _index(kind: str) -> Page:
    found = catalogue()[kind]
    lines = [
        f"# {kind.capitalize()}",
        f"\n{KINDS[kind]}\n",
        "| class, short name | what it does |",
        "| --- | --- |",
        *(
            f"| [{member.__name__}]({name}.md)<br>`{name}` | {_cell(parse(member).summary)} |"
            for name, member in classes(kind).items()
        ),
        f"\nOn the command line: `saccade list {kind}`, `saccade show {next(iter(found.members))}`.",
    ]
    anyone = next(iter(classes(kind).values()))
    base = next((b for b in anyone.__mro__ if b.__name__ == found.base and b.__module__.startswith("saccade")), None)
    if base is not None:
        lines += ["\n## Write your own\n", f"`{base.__module__}.{base.__name__}`\n", render(parse(base), level=3), ""]
        lines += [f"- `{name}`: {markdown(doc.summary)}" for name, doc in _documented(base)]
    return Page(f"{kind}/index.md", kind.capitalize(), "\n".join(lines))


def path_of(class_name: str) -> str:
    """The page of a class. Where two kinds have a class of that name, the one of attention comes first."""
    paths = {member.__name__: f"{kind}/{name}.md" for kind in KINDS for name, member in classes(kind).items()}
    for kind in ("scores", "selections", "aggregations"):
        paths |= {member.__name__: f"{kind}/{name}.md" for name, member in classes(kind).items()}
    paths |= {name: f"heart/{name}.md" for name in HEART}
    if class_name not in paths:
        raise KeyError(f"There is no page for {class_name!r}.{nearest(class_name, paths)}")
    return paths[class_name]


def configurations() -> Page:
    """A table of the configurations that ship with Saccade; the first comment of each says what it trains."""
    lines = [
        "# Configurations\n",
        "`saccade train NAME` trains one of these, `saccade copy NAME my.yaml` makes a copy to edit, and",
        "`saccade train NAME --help` lists every argument.\n",
        "| name | what it trains |",
        "| --- | --- |",
    ]
    for name, path in shipped().items():
        lines.append(f"| `{name}` | {_cell(path.read_text(encoding='utf-8').partition(chr(10))[0].strip('# '))} |")
    return Page("configurations.md", "Configurations", "\n".join(lines))


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
    home = catalogue()[kind].home
    package = importlib.import_module(home)
    place = home if hasattr(package, member.__name__) else member.__module__
    lines = [_class(member, f"from {place} import {member.__name__}", name=name)]
    if kind == "tasks":
        lines += [_options("a prediction", member.options), _options("an explanation", member.explain_options)]
    module = importlib.import_module(member.__module__)
    for public in getattr(package, "__all__", ()):
        function = getattr(package, public)
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            lines.append("## As a function\n")
            lines.append(_function(function, f"from {place} import {public}"))
    return Page(f"{kind}/{name}.md", name, "\n".join(lines))


def _options(of: str, options: type) -> str:
    parsed = parse(options)
    if "Args" not in parsed.sections:
        return ""
    return f"## Options of {of}\n\n{arguments(parsed.sections['Args'])}\n"


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
            documented = _documented(thing)
            lines += ["**Methods**\n"] if documented else []
            lines += [f"- `{method}`: {markdown(doc.summary)}" for method, doc in documented]
            lines.append("")
        elif inspect.isfunction(thing):
            lines.append(f"## {key}\n\n{_function(thing, None)}")
    return Page(f"{name}.md", name.capitalize(), "\n".join(lines))


def _documented(thing: type) -> list[tuple[str, Docstring]]:
    """The public methods and properties of a class that have docstrings of their own."""
    found = [
        (method, parse(getattr(body, "fget", None) or getattr(body, "func", body)))
        for method, body in vars(thing).items()
        if not method.startswith("_") and (_is_method(body) or hasattr(body, "func"))
    ]
    return [(method, doc) for method, doc in found if doc.summary]


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
