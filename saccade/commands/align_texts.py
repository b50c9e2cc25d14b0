"""The work of `saccade align`."""

from __future__ import annotations

import json as json_module
import math
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade.checks import check_count
from saccade.commands.align_inputs import ids_of, pairs_of_lines, unknown_parts, warn_about_long
from saccade.commands.strange import Strange
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import read_lines
from saccade.evaluation import CAUTION, MEANINGS
from saccade.evaluation.faithfulness import faithfulness as test_faithfulness
from saccade.evaluation.report import AlignmentFigure, alignment_figures
from saccade.interpretation.alignments import (
    FORMATS,
    METHODS,
    Alignment,
    Format,
    format_alignment,
    read_alignments,
)
from saccade.registry import nearest
from saccade.runs import Run, load
from saccade.tasks.generation.forced_alignment import (
    AlignedPair,
    HeadChoice,
    Pair,
    best_choice,
    tokenisers_of,
    usual_choice,
)
from saccade.tasks.generation.measures import testable
from saccade.tasks.generation.writer import writer

FAITHFUL_PAIRS = 50
"""How many pairs --faithfulness tests: each runs the model about twenty times per target token."""


class AlignOptions(NamedTuple):
    """The options of `saccade align`; its docstring explains them."""

    format: str
    one_based: bool
    extract: str
    threshold: float
    sink: str
    subwords: bool
    layer: int
    head: int | None
    shift: int | None
    choose: str | None
    reverse_model: str | None
    symmetrise: str | None
    gold: str | None
    gold_format: str | None
    gold_one_based: bool
    faithfulness: bool
    json: bool
    batch_size: int

    @property
    def of_gold(self) -> dict[str, Any]:
        """How gold files are read."""
        form = self.gold_format and _one_of(self.gold_format, FORMATS, "--gold-format")
        return {"format": form, "one_based": self.gold_one_based}


def align_texts(run: str | None, source: str | None, target: str | None, given: AlignOptions, *, trust: bool) -> None:
    """Prints the alignment of each pair of lines."""
    written = _one_of(given.format, FORMATS, "--format")
    if run is None or source is None or target is None:
        raise ValueError(
            "Say which model and which texts: saccade align runs/model --source a.en --target b.de; or evaluate a "
            "file: saccade align --score out.align --gold gold.talp"
        )
    if given.symmetrise is not None and given.reverse_model is None:
        raise ValueError("--symmetrise needs the model of the other direction: add --reverse-model runs/other.")
    if given.subwords and given.gold is not None:
        raise ValueError("--gold has links between words, so --subwords does not apply: leave it out.")
    if given.choose is not None and (given.layer, given.head, given.shift) != (-1, None, None):
        raise ValueError("--choose finds the layer, head and shift: leave --layer, --head and --shift out.")
    check_count("--batch-size", given.batch_size)
    for file in (source, target):
        check_file(file)
    model = load(run, trust=trust)
    tokenisers_of(model.task)
    if given.faithfulness and not testable(model.model):
        raise ValueError(
            f"--faithfulness changes attention weights, but {type(model.model).__name__} has none to change."
        )
    options: dict[str, Any] = {name: getattr(given, name) for name in ("extract", "threshold", "sink", "subwords")}
    options |= {"batch_size": given.batch_size, "choice": _choice(model, given)}
    if given.reverse_model is not None:
        options["reverse"] = load(given.reverse_model, trust=trust)
        options["reverse_choice"] = _choice(options["reverse"], given)
        options["method"] = _one_of(given.symmetrise or "grow-diag-final-and", METHODS, "--symmetrise")
    if given.choose is not None:
        options["choice"] = _chosen(model, given.choose, given.of_gold, given.sink)
        if given.reverse_model is not None:
            turned = _chosen(options["reverse"], given.choose, given.of_gold, given.sink, turned=True)
            options["reverse_choice"] = turned
    wanted = None
    if given.gold is not None:
        wanted = read_alignments(given.gold, sentences=sum(1 for _ in read_lines(Path(source))), **given.of_gold)
    kept: list[AlignedPair] = []
    first: list[Pair] = []
    number = 0
    strange = Strange("pair")
    for pairs in pairs_of_lines(source, target):
        strange.add(unknown_parts(model, pairs))
        first += pairs[: FAITHFUL_PAIRS - len(first)] if given.faithfulness else []
        warn_about_long(model, pairs, number)
        lines = []
        for aligned in model.align(pairs, **options):
            number += 1
            line = _line(aligned, written, number, given.one_based)
            if line or written != "naacl":  # which has a line for each link
                lines.append(line)
            if wanted is not None:
                kept.append(aligned)
        _write(lines, needed=wanted is None and not given.faithfulness)
    remarks = strange.remarks()
    figures: dict[str, AlignmentFigure] = {}
    if wanted is not None:
        backward = [aligned.backward for aligned in kept if aligned.backward is not None]
        figures = alignment_figures([a.links for a in kept], [a.weights for a in kept], backward, wanted)
    if given.faithfulness:
        figures |= test_faithfulness(writer(model.model), ids_of(model, first))
    if figures:
        _print_figures(figures, given.json, sys.stderr, remarks)
    else:
        print("".join(f"{remark}\n" for remark in remarks), end="", file=sys.stderr)


def _write(lines: Sequence[str], *, needed: bool) -> None:
    """Prints lines; if figures follow, a closed pipe, as with `head`, does not end the command."""
    try:
        print(*lines, sep="\n", end="\n" if lines else "", flush=True)
    except BrokenPipeError:
        if needed:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _choice(model: Run, given: AlignOptions) -> HeadChoice:
    shift = usual_choice(model.task).shift if given.shift is None else given.shift
    return HeadChoice(layer=given.layer, head=given.head, shift=shift)


def score_file(path: str, given: AlignOptions) -> None:
    """Prints the figures of an alignment file."""
    if given.gold is None:
        raise ValueError("--score needs gold links to compare with: add --gold gold.talp")
    wanted = read_alignments(given.gold, **given.of_gold)
    found = read_alignments(path, one_based=given.one_based)
    if len(found) != len(wanted):  # a NAACL file does not name the last pairs if they have no links
        sentences = max(len(found), len(wanted))
        wanted = read_alignments(given.gold, sentences=sentences, **given.of_gold)
        found = read_alignments(path, one_based=given.one_based, sentences=sentences)
    _print_figures(alignment_figures([list(each.possible) for each in found], gold=wanted), given.json, sys.stdout)


def _chosen(run: Run, files: str, of_gold: dict[str, Any], sink: Any, *, turned: bool = False) -> HeadChoice:
    """Chooses the attention to read on a development set, and prints the choice to standard error."""
    names = files.split(",")
    if len(names) != 3:
        raise ValueError(f"--choose takes two texts and their links, as dev.en,dev.de,dev.talp; got {files!r}.")
    for name in names:
        check_file(name)
    pairs = [pair for chunk in pairs_of_lines(names[0], names[1]) for pair in chunk]
    gold = read_alignments(names[2], sentences=len(pairs), **of_gold)
    if turned:
        pairs = [(target, source) for source, target in pairs]
        gold = [Alignment(*(frozenset((t, s) for s, t in links) for links in each)) for each in gold]
    choice, aer = best_choice(run.task, run.model, pairs, gold, sink=sink)
    head = "the mean of heads" if choice.head is None else f"head {choice.head}"
    print(f"{run.folder}: layer {choice.layer}, {head}, shift {choice.shift}: AER {100.0 * aer:.2f}", file=sys.stderr)
    return choice


def _line(aligned: AlignedPair, format: Format, number: int, one_based: bool) -> str:
    alignment = Alignment.of(aligned.links)
    if format != "json":
        return format_alignment(alignment, format, number=number, one_based=one_based)
    weights = [[round(weight, 4) for weight in row] for row in aligned.weights.tolist()]
    content = {"source": aligned.source, "target": aligned.target, "sure": sorted(alignment.sure), "weights": weights}
    return json_module.dumps(content, ensure_ascii=False)


def _print_figures(figures: Mapping[str, AlignmentFigure], json: bool, file: Any, remarks: Sequence[str] = ()) -> None:
    if json:
        known = {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in figures.items()}
        print(json_module.dumps({**known, **({"remarks": remarks} if remarks else {})}, indent=2), file=file)
        return
    print("".join(f"{remark}\n" for remark in remarks), end="", file=file)
    width = max(map(len, figures))
    for name, value in figures.items():
        text = textwrap.wrap(MEANINGS[name], 110 - width - 14)
        if isinstance(value, dict):
            shown = ""
            text += [f"{offset:+3d}  {mass:.4f}" for offset, mass in value.items()]
        else:
            shown = f"{value:10d}" if isinstance(value, int) else f"{value:10.4f}"
        print(f"{name:{width}}{shown:10}  {text[0]}", file=file)
        for line in text[1:]:
            print(" " * (width + 12) + line, file=file)
    if file is sys.stderr:  # of a model, not of a file
        print("\n" + textwrap.fill(CAUTION, 110), file=file)


def _one_of(name: str, choices: Sequence[Any], option: str) -> Any:
    if name not in choices:
        raise ValueError(f"{option}: unknown {name!r}.{nearest(name, choices)}")
    return name
