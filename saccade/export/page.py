"""A page: one HTML file that contains the model, for people without Python."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from importlib import resources
from pathlib import Path

from saccade.export.base import Format, formats, required
from saccade.export.describing import describe
from saccade.export.onnx import onnx_bytes
from saccade.export.refusing import check_graphs, graph_remarks
from saccade.export.tracing import graphs_of
from saccade.export.web_runtime import web_runtime
from saccade.runs import Run

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="saccade export">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>Type, and see the answer and where the model looked. The model is inside this page.</p>
<form id="ask">
<input id="input" aria-label="Input" autocomplete="off" spellcheck="false" disabled value="{example}">
<label id="search">Beam
<select id="beam"><option>1</option><option>3</option><option selected>5</option></select></label>
<button>Answer</button>
</form>
<output id="answer" for="input"></output>
<div id="status" role="status">Loading the model ...</div>
<div class="scroll"><table id="weights"></table></div>
<noscript>This page needs JavaScript to run the model.</noscript>
"""


TOKENISERS = ("bpe", "char", "pretokenised", "unigram", "word")
"""Those that `assets/vocabulary.js` has."""

KINDS = ("generation", "classification", "rating")
"""The answers that a page can show."""


@formats.register("page")
class Page(Format):
    """One HTML file that runs the model in a browser, offline, and shows what it attends to.

    It contains the ONNX graphs and onnxruntime-web, which npm fetches once. The page loads nothing from elsewhere, and
    sends nothing.

    Args:
        runtime: a folder with onnxruntime-web, if npm cannot fetch it here.
        example: the text that the page opens with.
    """

    suffix = ".html"

    def __init__(self, *, runtime: str | None = None, example: str = "") -> None:
        self.runtime = runtime
        self.example = example

    def check(self, run: Run) -> None:
        required("page", "onnx", "onnxscript")
        check_page(run)
        web_runtime(self.runtime)

    def remarks(self, run: Run) -> list[str]:
        return graph_remarks(run)

    def write(self, run: Run, output: Path) -> None:
        runtime = web_runtime(self.runtime)
        graphs = graphs_of(run)
        packed = {"wasm": runtime.binary, **{graph.name: onnx_bytes(graph) for graph in graphs}}
        script = "\n".join([_as_object(runtime.script), *map(_asset, ("vocabulary.js", "search.js", "page.js"))])
        style = _asset("page.css")
        head = HEAD.format(
            policy=_policy(script, style),
            title=html.escape(f"{type(run.model).__name__}: {run.folder.name}"),
            style=style,
            example=html.escape(self.example),
        )
        # `<` is escaped, so that no text can end the block.
        about = json.dumps(describe(run, graphs), ensure_ascii=False).replace("<", "\\u003c")
        with open(output, "wb") as file:
            file.write(f'{head}<script type="application/json" id="about">{about}</script>\n'.encode())
            for name, content in packed.items():
                file.write(f'<script type="application/octet-stream" id="{name}">'.encode())
                file.write(base64.b64encode(gzip.compress(content, mtime=0)))
                file.write(b"</script>\n")
            file.write(f'<script type="module">{script}</script>\n</body>\n</html>\n'.encode())


def check_page(run: Run) -> None:
    """Raises `ValueError`, naming what a page cannot read or show."""
    check_graphs(run)
    if len(run.task.inputs) != 1:
        several = " and ".join(run.task.inputs)
        raise ValueError(f"A page has one input, but this model reads {several}: use --format onnx or `saccade serve`.")
    about = run.task.portable(run.model)
    if about["kind"] not in KINDS or about.get("form") == "tags":
        what = "tags" if about.get("form") == "tags" else type(run.task).__name__
        raise ValueError(f"A page shows a text, a label or a number for an input: {what} is none of them.")
    role, field = next(iter(run.task.inputs.items()))
    texts = {role: field.portable(), **({"target": about["target"]} if "target" in about else {})}
    if texts[role]["kind"] != "text":
        raise ValueError(f"A page reads plain texts, but the {role} is the field {type(field).__name__}.")
    for name, text in texts.items():
        if text["tokeniser"]["kind"] not in TOKENISERS:
            raise ValueError(f"A page has no tokeniser {text['tokeniser']['kind']!r}, which the {name} has.")


def _as_object(module: str) -> str:
    """The runtime's module, with an object `ort` instead of its exports, which a script in a page cannot import."""
    body, _, exported = module.rpartition("export{")
    names = re.findall(r"(\w+) as (\w+)", exported.partition("}")[0])
    return f"{body}const ort = {{{', '.join(f'{name}: {own}' for own, name in names)}}};"


def _policy(script: str, style: str) -> str:
    """Only the page's own script and style run, WebAssembly among them, and nothing is fetched or sent."""
    return (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}' 'wasm-unsafe-eval'; "
        f"style-src 'sha256-{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (resources.files("saccade.export") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
