"""The command that measures a trained model: evaluate."""

from __future__ import annotations

import copy
import json as json_module
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from saccade.commands.inputs import check_roles
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.options import ComputingOptions, RescoringOptions, TableOptions
from saccade.commands.pictures import check_picture

if TYPE_CHECKING:
    from saccade.data.corpus import Corpus
    from saccade.evaluation import Figure, Table
    from saccade.runs import Evaluation, Run


def evaluate(
    run: str,
    *,
    data: str,
    tables: TableOptions,
    metrics: str | None = None,
    by_length: int | None = None,
    vary: str | None = None,
    plot: str | None = None,
    bootstrap: int | None = None,
    computing: ComputingOptions,
    rescoring: RescoringOptions,
    json: bool = False,
    trust_classes: bool = False,
    **options: Any,
) -> None:
    """Evaluate a model on examples whose targets are known.

        saccade evaluate runs/my-model --data test.tsv
        saccade evaluate runs/my-model --data test.csv --columns source=en,target=de --bad-rows skip
        saccade evaluate runs/my-model --data test.tsv --metrics bleu,chrf,ter
        saccade evaluate runs/my-model --data test.tsv --by-length 10 --plot lengths.png
        saccade evaluate runs/my-model --data test.tsv --vary beam=1,5,10
        saccade evaluate runs/my-classifier --data test.csv --plot reliability.png
        saccade evaluate runs/my-classifier --data test.csv --metrics auroc,auprc --bootstrap 1000

    Files are read like the training files, with the same columns and the same treatment of bad rows, unless --columns,
    --header or --bad-rows say otherwise; `--data.text body` is short for `--columns text=body`, and `target=ref1+ref2`
    names several right answers. Predictions are made as in `saccade predict`; validation during training may use other
    options (trainer.validate_options). `saccade evaluate RUN --help` lists the options of a run's task.

    Args:
        run: the folder of a trained model.
        data: test.tsv, .csv, .jsonl, .parquet, two text files as test.en,test.de, or a dataset as hf:folder:test.
        metrics: the figures to compute, as bleu,chrf (default: those of the run, task.metrics).
        by_length: also print the figures by length of the input, in bins of this many positions.
        vary: also print the figures for several values of an option, as beam=1,5,10.
        plot: write a picture as .png, .svg or .pdf: of the figures by length or by option if asked for, otherwise the
            task's own, which for classification is the reliability of the probabilities.
        bootstrap: resample the examples this many times for a 95 % interval around each figure.
        json: print a JSON object instead of tables.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    from saccade.checks import check_count

    with leaving_at_once():
        from saccade.runs import load

    for name, value in (("by-length", by_length), ("bootstrap", bootstrap)):
        if value is not None:
            check_count(f"--{name}", value)
    varied = _varied(vary)
    if plot is not None:
        check_picture(plot)
    model = load(run, trust=trust_classes)
    in_lines = by_length is not None or bool(varied)
    if plot is not None and not in_lines and not model.task.picture:
        raise ValueError(
            "--plot draws figures by length or by option: add --by-length 10, or --vary with an option and its values"
        )
    figures = None if metrics is None else [name.strip() for name in metrics.split(",")]
    corpus = _corpus(model, figures, tables.reading(model.task.fields))
    found = model.evaluate(
        data,
        by=by_length,
        vary=varied,
        corpus=corpus,
        plot=None if in_lines else plot,
        bootstrap=bootstrap,
        metrics=figures,
        workers=computing.workers or 1,
        batch_size=computing.batch_size,
        lm=rescoring.load(trust_classes),
        lm_weight=rescoring.lm_weight,
        **options,
    )
    for remark in found.remarks:
        print(remark, file=sys.stderr)
    search = model.task.options.of(options).describe()
    if plot is not None and in_lines:
        _plot(found, plot)
    if plot is not None:
        print(f"Wrote {plot}.", file=sys.stderr)
    if json:
        print(json_module.dumps({"search": search, **evaluation_json(found)}, indent=2))
        return
    if search:
        trained = model.task.options.of(model.plan.trainer.validate_options).describe()
        differs = trained not in ("", search) and model.plan.trainer.validate_examples != 0
        also = f"; validation during training used {trained}" if differs else ""
        print(f"Predicted by {search}{also}.")
    print_evaluation(found)


def evaluation_json(found: Evaluation) -> dict[str, Any]:
    """An evaluation in JSON's types."""

    def values(figures: dict[str, Figure]) -> dict[str, float | None]:  # JSON has no word for NaN
        return {name: None if math.isnan(figure.value) else figure.value for name, figure in figures.items()}

    return {
        "examples": found.examples,
        "seconds": round(found.seconds, 3),
        "remarks": found.remarks,
        "skipped": found.skipped,
        "figures": values(found.figures),
        "intervals": {name: list(f.interval) for name, f in found.figures.items() if f.interval is not None},
        "signatures": {name: figure.signature for name, figure in found.figures.items()},
        "by_length": [
            {"low": b.low, "high": b.high, "examples": b.examples, "figures": values(b.figures)}
            for b in found.by_length
        ],
        "varied": [{"options": name, "figures": values(figures)} for name, figures in found.varied.items()],
        "tables": {table.name: table.as_json() for table in found.tables},
    }


def print_evaluation(found: Evaluation) -> None:
    """An evaluation as tables."""
    width = max(map(len, found.figures))
    for name, figure in found.figures.items():
        between = "" if figure.interval is None else f"  [{_shown(figure.interval[0])}, {_shown(figure.interval[1])}]"
        print(f"{name:{width}}  {_shown(figure.value):>8}{between}  {figure.signature}")
    print(f"{found.examples:,} example{'s' * (found.examples != 1)} in {found.seconds:.1f} s")
    print_tables(found.tables)
    names = list(found.figures)
    if found.by_length:
        rows = [(f"{b.low}-{b.high}", b.figures, f"{b.examples:,}") for b in found.by_length]
        _print_rows("input length", rows, names)
    if found.varied:
        _print_rows("", [(name, figures, "") for name, figures in found.varied.items()], names)


def print_tables(tables: Sequence[Table]) -> None:
    """The tables that are small enough."""
    for table in tables:
        if table.printed:
            print("", *table.lines(), sep="\n")


def _print_rows(head: str, rows: Sequence[tuple[str, dict[str, Figure], str]], names: Sequence[str]) -> None:
    counted = any(count for _, _, count in rows)
    print(f"\n{head:>13}" + "".join(f"  {name:>{max(len(name), 8)}}" for name in names) + ("  examples" * counted))
    for label, figures, count in rows:
        cells = "".join(f"  {_shown(figures[name].value):>{max(len(name), 8)}}" for name in names)
        print(f"{label:>13}{cells}" + (f"  {count:>8}" if counted else ""))


def _shown(value: float) -> str:
    """Two decimals, but three digits for values below 1, which may be errors in any unit."""
    return f"{value:.2f}" if abs(value) >= 1.0 or not value else f"{value:.3g}"


def _plot(found: Evaluation, path: str) -> None:
    from saccade.interpretation.plots import plot_lines

    name = next(iter(found.figures))
    if found.by_length:
        places = [(b.low + b.high) / 2 for b in found.by_length]
        line = (places, [b.figures[name].value for b in found.by_length])
        plot_lines({name: line}, path, x="input length", y=name)
        return
    option = next(iter(found.varied)).partition("=")[0]
    values = [float(label.partition("=")[2]) for label in found.varied]
    plot_lines({name: (values, [figures[name].value for figures in found.varied.values()])}, path, x=option, y=name)


def _varied(text: str | None) -> dict[str, list[Any]]:
    """`beam=1,5,10` as {"beam": [1, 5, 10]}."""
    if text is None:
        return {}
    option, equals, values = text.partition("=")
    try:
        numbers = [float(value) if "." in value or "e" in value else int(value) for value in values.split(",")]
    except ValueError:
        numbers = []
    if not equals or not option.strip() or not numbers:
        raise ValueError(f"--vary takes an option and numbers, as in beam=1,5,10; got {text!r:.60}.")
    return {option.strip().replace("-", "_"): numbers}


def _corpus(model: Run, figures: list[str] | None, changes: dict[str, Any]) -> Corpus:
    """How the training files were read, with these changes; some figures need further columns."""
    from saccade.data.corpus import Corpus

    data = model.plan.data
    given = {name: getattr(data, name) for name in ("header", "bad_rows", "folds", "group")}
    asked = changes.pop("columns", {})
    task = copy.copy(model.task)
    if figures is not None:
        task.choose_metrics(figures)
    check_roles(task, asked)
    columns = {**(data.columns or {}), **asked}
    return Corpus(columns=columns or None, **{**given, **changes})
