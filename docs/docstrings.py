"""Converts Saccade's docstrings to Markdown with MathML."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from html import escape

from equations import equation, math

SECTIONS = ("Args", "Shapes", "Returns", "Raises", "Example", "Reference")

# In running text: q_i, s_{i-1}, \bar h_s (a one-character subscript or one in braces), \lambda (a command).
SYMBOL = re.compile(
    r"(?<![\w`{\\/])(?:"
    r"(?:\\(?:bar|hat|tilde) ?)?(?:\\?[A-Za-z]|\\[a-z]+)_(?:\{[^}]+\}|[A-Za-z0-9])(?!\w)"
    r"|\\(?:bar|hat|tilde) ?\{?[A-Za-z]\}?(?!\w)"
    r"|\\[A-Za-z]+(?![\w{]))"
)


@dataclass
class Docstring:
    """A parsed docstring: the first sentence, paragraphs and equations in order, and named sections."""

    summary: str = ""
    body: list[tuple[str, str]] = field(default_factory=list)
    """("text", "math" or "code", its source)"""

    sections: dict[str, str] = field(default_factory=dict)

    @property
    def equations(self) -> list[str]:
        return [source for kind, source in self.body if kind == "math"]


def parse(thing: object) -> Docstring:
    """Parses the docstring of a class or function."""
    parsed = Docstring()
    # Not `inspect.getdoc`: a method without its own docstring is documented with its base class.
    lines = inspect.cleandoc(thing.__doc__ or "").splitlines()
    while lines:
        line = lines.pop(0)
        if not line.strip():
            continue
        if line.startswith(".. math::"):
            source = [line.removeprefix(".. math::"), *_indented(lines)]
            parsed.body.append(("math", " ".join(" ".join(source).split())))
        elif line.endswith(":") and line[:-1] in SECTIONS:
            parsed.sections[line[:-1]] = inspect.cleandoc("\n".join(_indented(lines)))
        elif line.startswith("    "):
            parsed.body.append(("code", inspect.cleandoc("\n".join([line, *_indented(lines)]))))
        else:
            paragraph = [line]
            while lines and lines[0].strip() and not lines[0].startswith(".. "):
                paragraph.append(lines.pop(0))
            if parsed.summary:
                parsed.body.append(("text", "\n".join(paragraph)))
            else:
                parsed.summary = " ".join(paragraph)
    return parsed


def _indented(lines: list[str]) -> list[str]:
    """Removes and returns the lines that belong to a directive or a section."""
    taken = []
    while lines and (not lines[0].strip() or lines[0].startswith(" ")):
        taken.append(lines.pop(0))
    return taken


def markdown(text: str) -> str:
    """Converts running text to Markdown: symbols typeset, shapes as code, arXiv numbers as links."""
    pieces = re.split(r"(``?[^`]+``?)", text)
    return "".join(piece if i % 2 else _prose(piece) for i, piece in enumerate(pieces))


def _prose(text: str) -> str:
    pieces = re.split(r"(\(\*[^()]*\)|arXiv:\d{4}\.\d{4,5}|arXiv:cs/\d+)", text)
    result = []
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            escaped = escape(piece, quote=False).replace("*", r"\*").replace("-&gt;", "→")
            result.append(SYMBOL.sub(lambda found: f"<span>{math(found[0])}</span>", escaped))
        elif piece.startswith("("):
            result.append(f"`{' '.join(piece.split())}`")
        else:
            result.append(f"[{piece}](https://arxiv.org/abs/{piece.removeprefix('arXiv:')})")
    return "".join(result)


def render(docstring: Docstring, *, level: int = 2) -> str:
    """Renders a docstring as Markdown, with a heading for each section."""
    parts = [markdown(docstring.summary)]
    for kind, source in docstring.body:
        if kind == "math":
            parts.append(equation(source))
        elif kind == "code":
            parts.append(f"```\n{source}\n```")
        else:
            parts.append(markdown(source))
    for name, text in docstring.sections.items():
        title = "Arguments" if name == "Args" else name
        parts.append(f"{'#' * level} {title}" if level < 4 else f"**{title}**")
        parts.append(arguments(text) if name == "Args" else markdown(text))
    return "\n\n".join(parts)


def arguments(text: str) -> str:
    """Converts `name: meaning` entries, with indented continuation lines, to a list."""
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    items = []
    for entry in entries:
        names, _, meaning = entry.partition(": ")
        names = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        items.append(f"- {names}: {markdown(meaning)}")
    return "\n".join(items)
