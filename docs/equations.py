"""Converts LaTeX to MathML at build time, so that pages need neither scripts nor network access."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

from latex2mathml.converter import convert

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
NO_SPACE = ("mo", "mspace")

ElementTree.register_namespace("", NAMESPACE)


def equation(latex: str) -> str:
    r"""A display equation; formulas separated by \qquad are stacked on narrow pages."""
    parts = re.split(r",?\s*\\qquad", latex)
    if any(part.count("{") != part.count("}") or r"\begin" in part or r"\left" in part for part in parts[:-1]):
        parts = [latex]
    return '<div class="equation">' + "".join(f"<div>{math(part, display='block')}</div>" for part in parts) + "</div>"


def math(latex: str, *, display: str = "inline") -> str:
    """Converts an equation to MathML; a command unknown to the converter is an error, never raw LaTeX on a page."""
    known = re.sub(r"\\arg(?![A-Za-z])", r"\\operatorname{arg}", latex)
    tree = ElementTree.fromstring(convert(known, display=display))
    for element in tree.iter():
        text = (element.text or "").strip()
        if _tag(element) == "mtext":
            element.text = (element.text or "").replace(r"\_", "_")
        elif re.fullmatch(r"\\[A-Za-z]+", text):
            raise ValueError(f"latex2mathml does not know {text} in {latex!r}: write it with other commands.")
        elif text == "\u22a4":  # a transposed matrix, not the operator "true"
            element.tag = f"{{{NAMESPACE}}}mi"
        elif text in ("|", "\u2016", "\u2225"):  # the bars of a norm; a condition is written \mid
            element.attrib.update(lspace="0", rspace="0", stretchy="false")
        elif _tag(element) == "mo" and re.fullmatch("[A-Za-z]{2,}", text) and text != "mod":  # a function, not infix
            element.tag = f"{{{NAMESPACE}}}mi"
            element.attrib.clear()
        elif _tag(element) == "msup" and (element[1].text or "") == "\u2032":  # fonts raise the prime already
            element.tag = f"{{{NAMESPACE}}}mrow"
            element[1].attrib.update(lspace="0", rspace="0")
    for row in [element for element in tree.iter() if _tag(element) in ("math", "mrow", "mtd", "mstyle")]:
        _space_functions(row)
    return ElementTree.tostring(tree, encoding="unicode")


def _space_functions(row: ElementTree.Element) -> None:
    """Adds a thin space around function names: 2 log x, but log(x)."""
    children = list(row)
    added = 0
    for i, (left, right) in enumerate(itertools.pairwise(children)):
        if _tag(left) in NO_SPACE or _tag(right) in NO_SPACE:
            continue
        if _is_function(right) or (_is_function(left) and not _opens(right)):
            row.insert(i + 1 + added, ElementTree.Element(f"{{{NAMESPACE}}}mspace", width="0.1667em"))
            added += 1


def _is_function(element: ElementTree.Element) -> bool:
    if _tag(element) in ("msub", "msup", "msubsup", "munder"):
        return _is_function(element[0])
    return _tag(element) == "mi" and re.fullmatch("[a-z]{2,}", (element.text or "").strip()) is not None


def _opens(element: ElementTree.Element) -> bool:
    """Whether a row starts with a bracket."""
    first = next((inner for inner in element.iter() if (inner.text or "").strip()), None)
    return first is not None and (first.text or "").strip() in ("(", "[", "{")


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
