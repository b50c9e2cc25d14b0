"""The command that shows what a model looked at: explain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.artifacts import write_file
from saccade.commands.pictures import check_matplotlib, check_place
from saccade.data.readers.columns import checked
from saccade.data.readers.lines import read_lines
from saccade.interpretation.alignments import FORMATS as GOLD_FORMATS
from saccade.interpretation.alignments import read_alignments
from saccade.interpretation.explorer import FORMATS, Item, render
from saccade.registry import nearest
from saccade.run import load
from saccade.tasks.forced_alignment import Reader

SUFFIXES = {".html": "html", ".htm": "html", ".txt": "text", ".png": "png", ".svg": "svg", ".json": "json"}


def explain(
    run: str,
    *,
    input: list[str] | None = None,
    inputs: str | None = None,
    target: list[str] | None = None,
    targets: str | None = None,
    against: str | None = None,
    output: str | None = None,
    format: str | None = None,
    gold: str | None = None,
    gold_format: str | None = None,
    gold_one_based: bool = False,
    keep: str = "*",
    layer: int = -1,
    head: int | None = None,
    shift: int = 0,
    faithfulness: bool = False,
    beam: int | None = None,
    title: str | None = None,
    trust_classes: bool = False,
) -> None:
    """Show what a model looks at, on a page, in the terminal, as a picture or as data.

        saccade explain runs/model --input "le 3 avril 1998" --output page.html
        saccade explain runs/model --input "a small house" --target "ein kleines Haus" --gold links.talp
        saccade explain runs/model --against runs/other --inputs source.txt --output both.html

    The page is one file that needs no network: heat maps of every attention, ribbons, all heads, highlighted texts, and
    measures with what they mean. Attention is not alignment, and not always explanation.

    Args:
        run: the folder of a trained model.
        input: a source text; may be given several times, to see them side by side.
        inputs: a file of source texts, a text a line.
        target: what the model is made to write, for each --input; what it writes by itself if left out.
        targets: a file of targets, for each line of --inputs.
        against: the folder of another model, to see both side by side.
        output: the file to write; its suffix is the format: .html, .txt, .png, .svg or .json.
        format: html, text, png, svg or json, if the suffix does not say it (default: text, without --output).
        gold: the file of the links that people made, a line for each target: they are shown, and judge the attention.
        gold_format: its format, pharaoh, talp, naacl or json, if the suffix does not say it.
        gold_one_based: words in it are counted from 1.
        keep: show the attentions alone whose names fit this, for example *cross_attention.
        layer: of a Transformer: which layer's attention to the source is measured, from 0, or -1 for the last.
        head: which head is measured, from 0; the mean over all by default.
        shift: 1 measures each word one step later, when it has just been written.
        faithfulness: test whether the model depends on what it looks at also where that takes time: long inputs.
        beam: hypotheses kept at each step of the search; 1 is greedy (default: 5).
        title: of the page.
        trust_classes: let the runs use classes that are not Saccade's, which runs their code.
    """
    form = _format(output, format)
    if gold_format is not None and gold_format not in GOLD_FORMATS:
        raise ValueError(f"--gold-format: unknown {gold_format!r}.{nearest(gold_format, GOLD_FORMATS)}")
    if beam is not None and (target or targets):
        raise ValueError("--beam is for the model's own targets: leave it out, or --target.")
    sources = _texts(input, inputs, "--input", "--inputs")
    wanted = _texts(target, targets, "--target", "--targets")
    if not sources:
        raise ValueError('Say what to explain: --input "a text", or --inputs file.txt')
    options: dict[str, Any] = {"reader": Reader(layer=layer, head=head, shift=shift), "keep": keep}
    options |= {"faithfulness": True} if faithfulness else {}
    options |= {} if beam is None else {"beam": beam}
    if gold is not None:
        options["gold"] = read_alignments(
            gold,
            format=gold_format,
            one_based=gold_one_based,
            sentences=len(sources),
        )
    folders = [run] if against is None else [run, against]
    names = _names(folders)
    several: list[list[Item]] = []
    for folder, name in zip(folders, names, strict=True):
        model = load(folder, trust=trust_classes)
        several.append(model.explain(sources, wanted or None, name=name, **options))
    items = [item for each in zip(*several, strict=True) for item in each]
    about = " and ".join(name or Path(run).resolve().name for name in names)
    shown = render(items, form, title=title or f"Attention of {about}", side_by_side=True)
    _write(shown, form, output)


def _format(output: str | None, format: str | None) -> str:
    """What to write, checked before any work."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"--format: unknown {format!r}.{nearest(format, FORMATS)}")
    if output is None:
        form = format or "text"
    else:
        check_place(output, "--output")
        suffix = Path(output).suffix.lower()
        if format is None and suffix not in SUFFIXES:
            raise ValueError(
                f"--output {output}: no format has the suffix {suffix!r}.{nearest(suffix, SUFFIXES)} Or give --format."
            )
        form = format or SUFFIXES[suffix]
    if form in ("png", "svg"):
        check_matplotlib(f"--format {form}")
    return form


def _texts(given: list[str] | None, file: str | None, one: str, many: str) -> list[str]:
    if given and file is not None:
        raise ValueError(f"{one} and {many} say the same: give one of the two.")
    if file is None:
        for number, text in enumerate(given or (), start=1):
            checked(text, one.strip("-"), one, number)
        return given or []
    lines = [checked(text, many.strip("-")[:-1], file, number) for number, text in enumerate(read_lines(Path(file)), 1)]
    if not lines:
        raise ValueError(f"{many} {file}: the file is empty.")
    return lines


def _names(folders: Sequence[str]) -> list[str | None]:
    """What tells the models apart: nothing if there is one."""
    if len(folders) == 1:
        return [None]
    names = [Path(folder).resolve().name for folder in folders]
    return list(names) if len(set(names)) == len(names) else list(folders)


def _write(content: bytes, form: str, output: str | None) -> None:
    if output is not None:
        write_file(output, content)
        print(f"Wrote {output} ({len(content) / 1e6:.1f} MB).", file=sys.stderr)
    elif form in ("text", "json", "html"):
        print(content.decode("utf-8"), end="" if content.endswith(b"\n") else "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
