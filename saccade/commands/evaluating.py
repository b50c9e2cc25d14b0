"""The command that measures a trained model: evaluate."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from typing import Any

from saccade.checks import check_count
from saccade.commands.pictures import check_picture
from saccade.commands.predicting import tell_unfinished
from saccade.configuration.build import check_part
from saccade.data.corpus import Corpus
from saccade.evaluation import Figure
from saccade.registry import nearest
from saccade.run import Evaluation, Run, load


def evaluate(
    run: str,
    *,
    data: str,
    columns: str | None = None,
    header: str | None = None,
    bad_rows: str | None = None,
    beam: int | None = None,
    beams: str | None = None,
    by_length: int | None = None,
    plot: str | None = None,
    length_penalty: float | None = None,
    coverage_penalty: float | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    workers: int = 1,
    json: bool = False,
    trust_classes: bool = False,
) -> None:
    """Evaluate a model on examples whose targets are known.

        saccade evaluate runs/my-model --data test.tsv
        saccade evaluate runs/my-model --data test.csv --columns source=en,target=de --bad-rows skip
        saccade evaluate runs/my-model --data test.tsv --by-length 10 --plot lengths.png

    The files are read as those of the training were, with the same columns and the same care about bad rows, unless
    --columns, --header or --bad-rows say otherwise. Predictions are made as `saccade predict` makes them, by beam
    search; the validations of a training may be greedy (trainer.validate_options): --beam 1 compares with them.

    Args:
        run: the folder of a trained model.
        data: test.tsv, .csv, .jsonl, .parquet, two text files as test.en,test.de, or a dataset as hf:folder:test.
        columns: which column plays which role, by name or number from 0, as source=en,target=de.
        header: yes or no: whether TSV and CSV files begin with one; by default they do if a column is given by name.
        bad_rows: error stops at a row that cannot be used, skip leaves it out, counted and listed.
        beam: hypotheses kept at each step of the search; 1 is greedy (default: 5).
        beams: beam sizes to compare, as 1,2,5,10.
        by_length: show the figures by source length too, in bins of this many tokens.
        plot: write a picture of the figures by length (or by beam size), as .png, .svg or .pdf.
        length_penalty: the exponent of the length that a score is divided by: 0 favours short predictions, 1 compares
            nearly by token (default: 0.6).
        coverage_penalty: how much it costs to leave source words unread (default: 0).
        max_length: the most tokens of a prediction (default: ten more than the longest training target has, or than
            twice what the length of the source suggests).
        batch_size: how many examples are predicted together.
        workers: how many processes share the work, each with one thread; on a CPU as many as it has cores are fastest.
        json: print a JSON object instead of tables.
        trust_classes: let the run use classes that are not Saccade's, which runs their code.
    """
    sizes = _sizes(beams)
    for name, value in (("by-length", by_length), ("workers", workers)):
        if value is not None:
            check_count(f"--{name}", value)
    if plot is not None:
        if by_length is None and not sizes:
            raise ValueError("--plot draws figures by length or by beam size: add --by-length 10 or --beams 1,2,5,10")
        check_picture(plot)
    given = {
        "beam": beam,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "max_length": max_length,
        "batch_size": batch_size,
    }
    options = {name: value for name, value in given.items() if value is not None}
    reading = {"columns": _roles(columns), "header": _yes_or_no(header), "bad_rows": bad_rows}
    model = load(run, trust=trust_classes)
    for changes in ({}, *({"beam": size} for size in sizes)):
        model.task.check_options({**options, **changes})
    corpus = _corpus(model, {name: value for name, value in reading.items() if value is not None})
    found = model.evaluate(data, by_length=by_length, beams=sizes, corpus=corpus, workers=workers, **options)
    tell_unfinished(found.unfinished, found.examples)
    if found.unread:
        print(f"{found.unread:,} of {found.examples:,} sources were too long to be read to their end.", file=sys.stderr)
    search = model.task.describe_search(options)
    if plot is not None:
        _plot(found, plot)
    if json:
        print(json_module.dumps({"search": search, **evaluation_json(found)}, indent=2))
    else:
        trained = model.task.describe_search(model.plan.trainer.validate_options)
        if search:
            told = trained != search and model.plan.trainer.validate_examples != 0
            also = f"; validations in its training use {trained}" if told else ""
            print(f"Predicted by {search}{also}.")
        print_evaluation(found)


def evaluation_json(found: Evaluation) -> dict[str, Any]:
    """An evaluation as JSON can hold it."""

    def values(figures: dict[str, Figure]) -> dict[str, float]:
        return {name: figure.value for name, figure in figures.items()}

    return {
        "examples": found.examples,
        "seconds": round(found.seconds, 3),
        "unfinished": found.unfinished,
        "unread": found.unread,
        "skipped": found.skipped,
        "figures": values(found.figures),
        "signatures": {name: figure.signature for name, figure in found.figures.items()},
        "by_length": [
            {"low": b.low, "high": b.high, "examples": b.examples, "figures": values(b.figures)}
            for b in found.by_length
        ],
        "by_beam": [{"beam": size, "figures": values(figures)} for size, figures in found.by_beam.items()],
    }


def print_evaluation(found: Evaluation) -> None:
    """An evaluation as tables."""
    width = max(map(len, found.figures))
    for name, figure in found.figures.items():
        print(f"{name:{width}}  {figure.value:8.2f}  {figure.signature}")
    print(f"{found.examples:,} examples in {found.seconds:.1f} s")
    names = list(found.figures)
    if found.by_length:
        rows = [(f"{b.low}-{b.high}", b.figures, f"{b.examples:,}") for b in found.by_length]
        _print_rows("source tokens", rows, names)
    if found.by_beam:
        _print_rows("beam", [(str(size), figures, "") for size, figures in found.by_beam.items()], names)


def _print_rows(head: str, rows: Sequence[tuple[str, dict[str, Figure], str]], names: Sequence[str]) -> None:
    counted = any(count for _, _, count in rows)
    print(f"\n{head:>13}" + "".join(f"  {name:>{max(len(name), 8)}}" for name in names) + ("  examples" * counted))
    for label, figures, count in rows:
        cells = "".join(f"  {figures[name].value:{max(len(name), 8)}.2f}" for name in names)
        print(f"{label:>13}{cells}" + (f"  {count:>8}" if counted else ""))


def _plot(found: Evaluation, path: str) -> None:
    from saccade.interpretation.plots import plot_lines

    name = next(iter(found.figures))
    if found.by_length:
        places = [(b.low + b.high) / 2 for b in found.by_length]
        line = (places, [b.figures[name].value for b in found.by_length])
        plot_lines({name: line}, path, x="source tokens", y=name)
    else:
        heights = [figures[name].value for figures in found.by_beam.values()]
        plot_lines({name: (list(found.by_beam), heights)}, path, x="beam size", y=name)


def _sizes(text: str | None) -> list[int]:
    try:
        return [int(size) for size in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--beams are whole numbers with commas between, as 1,2,5; got {text!r}.") from None


def _corpus(model: Run, changes: dict[str, Any]) -> Corpus:
    """How the training files were read, with what is to be otherwise."""
    part, task = model.plan.parts["data"], model.task
    if "columns" in changes:
        for role in changes["columns"]:
            if role not in task.columns:
                raise ValueError(f"--columns: there is no role {role!r}.{nearest(role, task.columns)}")
        missing = [role for role in task.scored or task.columns if role not in changes["columns"]]
        if missing:
            raise ValueError(f"--columns: say which column is the {' and the '.join(missing)}.")
    corpus: Corpus = check_part(part.kind, {**part.plain, **changes}, "data").make()
    return corpus


def _roles(text: str | None) -> dict[str, str | int] | None:
    """`source=en,target=2` as {"source": "en", "target": 2}."""
    if text is None:
        return None
    found: dict[str, str | int] = {}
    for entry in text.split(","):
        role, equals, column = (part.strip() for part in entry.partition("="))
        if not equals or not role or not column:
            raise ValueError(f"--columns are roles and columns, as source=en,target=de; got {text!r}.")
        found[role] = int(column) if column.isdecimal() else column
    return found


def _yes_or_no(text: str | None) -> bool | None:
    if text not in (None, "yes", "no"):
        raise ValueError(f"--header is yes or no, got {text!r}.")
    return None if text is None else text == "yes"
