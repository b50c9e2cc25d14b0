"""The command that shows what a model looked at: explain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.commands.inputs import check_one_source, input_corpus, named_inputs, parse_object, read_inputs
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.options import TableOptions
from saccade.commands.pictures import check_matplotlib, check_place
from saccade.registry import nearest

if TYPE_CHECKING:
    from saccade.runs import Run

SUFFIXES = {".html": "html", ".htm": "html", ".txt": "text", ".png": "png", ".svg": "svg", ".json": "json"}
MOST = 200
"""How many inputs one page shows."""


def explain(
    run: str,
    inputs: list[str],
    *,
    input: list[str] | None = None,
    target: list[str] | None = None,
    targets: str | None = None,
    tables: TableOptions,
    against: str | None = None,
    output: str | None = None,
    format: str | None = None,
    title: str | None = None,
    trust_classes: bool = False,
    **options: Any,
) -> None:
    """Show what a model attends to: on a page, in the terminal, as a picture or as data.

        saccade explain runs/model --input "le 3 avril 1998" --output page.html
        saccade explain runs/model --input "a small house" --target "ein kleines Haus" --gold links.talp
        saccade explain runs/model source.txt --against runs/other --output both.html

    The page is one file that needs no network: heat maps of every attention, ribbons, all heads, highlighted texts, and
    measures with their meanings. Attention is not alignment, and not always explanation. `saccade explain RUN --help`
    lists the options of a run's task.

    Args:
        run: the folder of a trained model.
        inputs: files to read inputs from, as for `saccade predict`.
        input: an input as text, or as a JSON object for a task with several; may be given several times, to compare
            them side by side.
        target: the answer to force the model to give, for each input (default: its own answer).
        targets: a file of targets, one per line.
        against: the folder of another model, to see both side by side.
        output: the file to write; its suffix is the format: .html, .txt, .png, .svg or .json.
        format: html, text, png, svg or json; by default taken from the suffix of --output, or text.
        title: the title of the page.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    with leaving_at_once():
        from saccade.interpretation.explorer import FORMATS, render
        from saccade.runs import load

    form = _format(output, format, FORMATS)
    if target and targets is not None:
        raise ValueError("--target and --targets cannot be combined: use one of them.")
    folders = [run] if against is None else [run, against]
    names = _names(folders)
    models = [load(folder, trust=trust_classes) for folder in folders]
    input = named_inputs(models[0].task, options, input)
    check_one_source(input, inputs)
    if not input and not inputs:
        raise ValueError('There is nothing to explain: give --input "a text", or a file')
    tasks = [type(model.task).__name__ for model in models]
    if len(set(tasks)) > 1:
        raise ValueError(
            f"{' and '.join(folders)} have different tasks ({', '.join(tasks)}): name two runs with the same task."
        )
    several = []
    for model, name in zip(models, names, strict=True):
        wanted = target or (_lines(targets) if targets is not None else None)
        given: list[Any] = list(input or ())
        if len(model.task.inputs) > 1:
            given = [parse_object(text, "--input", model.task) for text in given]
        if inputs:
            known = model.task.targets if model.task.compared and wanted is None else {}
            given = list(read_inputs(model.task, input_corpus(model, tables, extras=known), inputs, extras=known))
        if len(given) > MOST:
            raise ValueError(
                f"A page shows at most {MOST} inputs, got {len(given):,}: write the ones to look at to a file of their "
                "own, or give them with --input."
            )
        several.append(_explain(model, given, wanted, read=bool(inputs), name=name, options=options))
    items = [item for each in zip(*several, strict=True) for item in each]
    about = " and ".join(name or Path(run).resolve().name for name in names)
    shown = render(items, form, title=title or f"Attention of {about}", side_by_side=True)
    _write(shown, form, output)


def _explain(
    model: Run, given: list[Any], wanted: list[str] | None, *, read: bool, name: str | None, options: dict[str, Any]
) -> Any:
    named = {**options, **({} if name is None else {"name": name})}
    if not read or wanted is not None:
        return model.explain(given, wanted, **named)
    return model.show(given, **named)


def _format(output: str | None, format: str | None, formats: Sequence[str]) -> str:
    """The format to write, checked before any work."""
    if format is not None and format not in formats:
        raise ValueError(f"--format: unknown {format!r}.{nearest(format, formats)}")
    if output is None:
        form = format or "text"
    else:
        check_place(output, "--output")
        suffix = Path(output).suffix.lower()
        if format is None and suffix not in SUFFIXES:
            raise ValueError(
                f"--output {output}: there is no format for the suffix {suffix!r}.{nearest(suffix, SUFFIXES)} Or set "
                "--format."
            )
        form = format or SUFFIXES[suffix]
    if form in ("png", "svg"):
        check_matplotlib(f"--format {form}")
    return form


def _lines(file: str) -> list[str]:
    from saccade.data.readers.files import check_file
    from saccade.data.readers.lines import read_lines

    return list(read_lines(check_file(file)))


def _names(folders: Sequence[str]) -> list[str | None]:
    """Names that distinguish the models; empty if there is only one."""
    if len(folders) == 1:
        return [None]
    names = [Path(folder).resolve().name for folder in folders]
    return list(names) if len(set(names)) == len(names) else list(folders)


def _write(content: bytes, form: str, output: str | None) -> None:
    from saccade.artifacts import write_file

    if output is not None:
        write_file(output, content)
        size = f"{len(content) / 1e6:.1f} MB" if len(content) >= 100_000 else f"{len(content) / 1e3:.1f} kB"
        print(f"Wrote {output} ({size}).", file=sys.stderr)
    elif form in ("text", "json", "html"):
        print(content.decode("utf-8"), end="" if content.endswith(b"\n") else "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
