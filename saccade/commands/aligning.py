"""The command that aligns words: align."""

from __future__ import annotations

import json as json_module
import math
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from saccade.data.readers.columns import checked
from saccade.data.readers.lines import read_lines
from saccade.data.special import EOS
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
from saccade.run import Run, load
from saccade.tasks.explained_measures import testable
from saccade.tasks.forced_alignment import Aligned, Pair, Reader, choose_reader, too_long

CHUNK = 1024
"""How many pairs are read before the first is written: those of like length are aligned together."""

FAITHFUL_PAIRS = 50
"""How many pairs --faithfulness tests: each asks the model some twenty times about every target token."""


def align(
    run: str | None = None,
    *,
    source: str | None = None,
    target: str | None = None,
    format: str = "pharaoh",
    one_based: bool = False,
    extract: str = "max",
    threshold: float = 0.2,
    sink: str = "drop",
    subwords: bool = False,
    layer: int = -1,
    head: int | None = None,
    shift: int = 0,
    choose: str | None = None,
    reverse_model: str | None = None,
    symmetrise: str | None = None,
    gold: str | None = None,
    gold_format: str | None = None,
    gold_one_based: bool = False,
    faithfulness: bool = False,
    score: str | None = None,
    json: bool = False,
    batch_size: int = 32,
    trust_classes: bool = False,
) -> None:
    """Align the words of two texts by what a model looks at, or judge alignments.

        saccade align runs/model --source a.en --target b.de > out.align
        saccade align runs/en-de --reverse-model runs/de-en --source a.en --target b.de > both.align
        saccade align --score out.align --gold gold.talp

    The model is made to write the target (forced decoding), and each target word is linked to the source word that it
    looks at most. Words stand between spaces and are counted from 0, a line for each pair of lines. Files that are read
    are Pharaoh or talp (0-0 1p2, p for possible), NAACL (.naacl, .wa) or JSON (.json, .jsonl), as their suffixes say.

    Args:
        run: the folder of a trained model.
        source: the text file of the source sentences, a sentence a line.
        target: the text file of the target sentences.
        format: pharaoh, talp, naacl, or json, which has words and weights as well.
        one_based: count words from 1, in what is written, and in what --score reads.
        extract: max, threshold (all looked at by at least --threshold), or mutual (who look at each other most).
        threshold: of --extract threshold.
        sink: drop or redistribute the attention to the end of the sentence.
        subwords: align pieces instead of words.
        layer: of a Transformer: which layer to read, from 0, or -1 for the last; of both models, as --head and --shift.
        head: which head to read, from 0; the mean over all by default.
        shift: 1 reads each word one step later, when it has just been written: often better with Transformers.
        choose: take the layer, head and shift with the lowest error on texts with gold links, dev.en,dev.de,dev.talp.
        reverse_model: the folder of a model of the other direction, to symmetrise with.
        symmetrise: intersection, union, grow-diag, grow-diag-final, or grow-diag-final-and, which is the default.
        gold: the file of the links that people made: figures go to standard error, or to standard output with --score.
        gold_format: the format of --gold and --choose, if the suffix does not say it.
        gold_one_based: words in the gold files are counted from 1.
        faithfulness: also test, on the first 50 pairs, whether the model depends on what it looks at.
        score: an alignment file to judge by --gold; no model is needed.
        json: print figures as a JSON object.
        batch_size: how many pairs are aligned together.
        trust_classes: let the run use classes that are not Saccade's, which runs their code.
    """
    written = _one_of(format, FORMATS, "--format")
    of_gold = {"format": gold_format and _one_of(gold_format, FORMATS, "--gold-format"), "one_based": gold_one_based}
    if score is not None:
        _score(score, gold, one_based, of_gold, json)
        return
    if run is None or source is None or target is None:
        raise ValueError(
            "Say which model and which texts: saccade align runs/model --source a.en --target b.de, or judge a file: "
            "saccade align --score out.align --gold gold.talp"
        )
    if symmetrise is not None and reverse_model is None:
        raise ValueError("--symmetrise needs the model of the other direction: add --reverse-model runs/other.")
    if subwords and gold is not None:
        raise ValueError("--gold has links between words: leave --subwords out.")
    reader = Reader(layer=layer, head=head, shift=shift)
    if choose is not None and reader != Reader():
        raise ValueError("--choose finds the layer, head and shift: leave --layer, --head and --shift out.")
    model = load(run, trust=trust_classes)
    if faithfulness and not testable(model.model):
        raise ValueError(
            f"--faithfulness changes attention weights, and {type(model.model).__name__} has none to change."
        )
    options: dict[str, Any] = {"extract": extract, "threshold": threshold, "sink": sink, "subwords": subwords}
    options |= {"batch_size": batch_size}
    if reverse_model is not None:
        options["reverse"] = load(reverse_model, trust=trust_classes)
        options["reverse_reader"] = reader
        options["method"] = _one_of(symmetrise or "grow-diag-final-and", METHODS, "--symmetrise")
    if choose is not None:
        reader = _chosen(model, choose, of_gold, sink)
        if reverse_model is not None:
            options["reverse_reader"] = _chosen(options["reverse"], choose, of_gold, sink, turned=True)
    wanted = None
    if gold is not None:
        wanted = read_alignments(gold, sentences=sum(1 for _ in read_lines(Path(source))), **of_gold)  # type: ignore[arg-type]
    kept: list[Aligned] = []
    first: list[Pair] = []
    number = 0
    for pairs in _chunks(source, target):
        first += pairs[: FAITHFUL_PAIRS - len(first)] if faithfulness else []
        _tell_long(model, pairs, number)
        for aligned in model.align(pairs, reader=reader, **options):
            number += 1
            line = _line(aligned, written, number, one_based)
            if line or written != "naacl":  # which has a line for each link
                print(line)
            if wanted is not None:
                kept.append(aligned)
        sys.stdout.flush()
    figures: dict[str, AlignmentFigure] = {}
    if wanted is not None:
        backward = [aligned.backward for aligned in kept if aligned.backward is not None]
        figures = alignment_figures([a.links for a in kept], [a.weights for a in kept], backward, wanted)
    if faithfulness:
        figures |= test_faithfulness(model.model, _ids(model, first))
    if figures:
        _print_figures(figures, json, sys.stderr)


def _score(path: str, gold: str | None, one_based: bool, of_gold: dict[str, Any], json: bool) -> None:
    if gold is None:
        raise ValueError("--score needs the links to judge by: add --gold gold.talp")
    wanted = read_alignments(gold, **of_gold)
    found = read_alignments(path, one_based=one_based)
    if len(found) != len(wanted):  # a NAACL file does not name the last pairs if they have no links
        sentences = max(len(found), len(wanted))
        wanted = read_alignments(gold, sentences=sentences, **of_gold)
        found = read_alignments(path, one_based=one_based, sentences=sentences)
    _print_figures(alignment_figures([list(each.possible) for each in found], gold=wanted), json, sys.stdout)


def _chosen(run: Run, files: str, of_gold: dict[str, Any], sink: Any, *, turned: bool = False) -> Reader:
    """Where to read a model, by a development set; what was chosen goes to standard error."""
    names = files.split(",")
    if len(names) != 3:
        raise ValueError(f"--choose takes two texts and their links, as dev.en,dev.de,dev.talp; got {files!r}.")
    pairs = [pair for chunk in _chunks(names[0], names[1]) for pair in chunk]
    gold = read_alignments(names[2], sentences=len(pairs), **of_gold)
    if turned:
        pairs = [(target, source) for source, target in pairs]
        gold = [Alignment(*(frozenset((t, s) for s, t in links) for links in each)) for each in gold]
    reader, aer = choose_reader(run.task, run.model, pairs, gold, sink=sink)
    head = "the mean of heads" if reader.head is None else f"head {reader.head}"
    print(f"{run.folder}: layer {reader.layer}, {head}, shift {reader.shift}: AER {aer:.4f}", file=sys.stderr)
    return reader


def _chunks(source: str, target: str) -> Iterator[list[Pair]]:
    """The pairs of lines, some at a time; empty lines are pairs too."""
    pairs: list[Pair] = []
    number = 0
    for number, lines in enumerate(zip_longest(read_lines(Path(source)), read_lines(Path(target))), start=1):
        if None in lines:
            counts = (f"{file} has {sum(1 for _ in read_lines(Path(file)))} lines" for file in (source, target))
            raise ValueError(f"Texts to align must have equally many lines: {', '.join(counts)}.")
        for text, role, file in zip(lines, ("source", "target"), (source, target), strict=True):
            if text.strip():
                checked(text, role, file, number)
        pairs.append(lines)
        if len(pairs) == CHUNK:
            yield pairs
            pairs = []
    if pairs:
        yield pairs
    elif not number:
        raise ValueError(f"{source} and {target} are empty: there is nothing to align.")


def _tell_long(run: Run, pairs: Sequence[Pair], before: int) -> None:
    lines = [str(before + number + 1) for number in too_long(run.task, run.model, pairs)]
    if lines:
        shown = ", ".join(lines[:5]) + (", ..." if len(lines) > 5 else "")
        print(
            f"{len(lines)} pairs have more tokens than the model has positions, and so no links: lines {shown}. Split "
            "them into sentences.",
            file=sys.stderr,
        )


def _line(aligned: Aligned, format: Format, number: int, one_based: bool) -> str:
    alignment = Alignment.of(aligned.links)
    if format != "json":
        return format_alignment(alignment, format, number=number, one_based=one_based)
    weights = [[round(weight, 4) for weight in row] for row in aligned.weights.tolist()]
    content = {"source": aligned.source, "target": aligned.target, "sure": sorted(alignment.sure), "weights": weights}
    return json_module.dumps(content, ensure_ascii=False)


def _ids(run: Run, pairs: Sequence[Pair]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The pairs that can be aligned, as ids."""
    left_out = set(too_long(run.task, run.model, pairs))
    task: Any = run.task
    device = next(run.model.parameters()).device
    found = []
    for number, (source, target) in enumerate(pairs):
        if number not in left_out and source.strip() and target.strip():
            sides = [*task.source_tokeniser.encode(source), EOS], [*task.target_tokeniser.encode(target), EOS]
            found.append((torch.tensor(sides[0], device=device), torch.tensor(sides[1], device=device)))
    return found


def _print_figures(figures: Mapping[str, AlignmentFigure], json: bool, file: Any) -> None:
    if json:
        known = {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in figures.items()}
        print(json_module.dumps(known, indent=2), file=file)
        return
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
