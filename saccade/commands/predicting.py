"""The command that uses a trained model: predict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TextIO

from saccade.commands.arguments import changed
from saccade.commands.inputs import check_one_source, chunks, input_corpus, named_inputs, read_inputs
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.options import (
    BulkOptions,
    ComputingOptions,
    InputOptions,
    OutputOptions,
    RescoringOptions,
    TableOptions,
)
from saccade.commands.strange import Strange
from saccade.commands.writing import draw_answer, is_wide, writer

if TYPE_CHECKING:
    from saccade.runs import Run
    from saccade.tasks import Answer, Example
    from saccade.tasks.base import Ranking

PICTURES = 6
"""How many answers --plot draws."""

CHUNK = 1024
"""How many inputs are read before the first answer: inputs of similar size are answered together."""

NAMED = 5
"""How many truncated inputs are named; the others are counted."""


def predict(
    run: str,
    inputs: list[str],
    *,
    given: InputOptions,
    tables: TableOptions,
    written: OutputOptions,
    computing: ComputingOptions,
    bulk: BulkOptions,
    rescoring: RescoringOptions,
    trust_classes: bool = False,
    **options: Any,
) -> None:
    """Answer each input: a line of standard input, a row of a table, or a file.

        saccade predict runs/my-model --input "a text"
        saccade predict runs/my-model < source.txt > target.txt
        saccade predict runs/my-model reviews.csv --columns text=body --format jsonl
        saccade predict runs/speech recordings/ --output transcripts.txt
        saccade predict runs/my-model --data big/*.parquet --output answers/
        arecord -t wav | saccade predict runs/online - --stream

    Each input gives one line, in order. --scores adds a column after a tab. If you ask for several answers, each has
    its own line, which begins with the number of its input, counted from 1. The answer to an empty input is empty.

    The options of a prediction depend on the task: `saccade predict RUN --help` lists those of a run. Very long inputs
    are truncated, with a warning.

    --data is for tables larger than memory (Parquet, JSON Lines, CSV, TSV). The output folder gets files in the same
    format, with the columns of the input and those of the answer; the same command continues after an interruption.

    Args:
        run: the folder of a trained model.
        inputs: files or folders to read (default: standard input).
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    _check_together(given, written, computing, bulk, rescoring)
    if not given.data:
        written.check_file(inputs)
    with leaving_at_once():
        from saccade.runs import load

    model = load(run, trust=trust_classes)
    if given.data:
        from saccade.commands.bulk import predict_in_bulk

        predict_in_bulk(model, [*given.data, *inputs], written.output, tables, computing, bulk, options)
        return
    values = named_inputs(model.task, options, given.input)
    check_one_source(values, inputs)
    with ExitStack() as opened:
        file = sys.stdout
        if written.stream:
            from saccade.commands.streaming import predict_streamed

            if values:
                raise ValueError("--stream reads recordings: name files, a folder, or - for standard input.")
            if written.output is not None:
                file = opened.enter_context(open(written.output, "w", encoding="utf-8"))
            predict_streamed(model, inputs, file, as_json=written.format == "jsonl", **options)
            return
        asked = model.task.options.of(options)  # before standard input is read: it may never end
        examples = read_inputs(model.task, input_corpus(model, tables), inputs, values)
        looking = next(iter(changed(written, "draw", "plot")), None)
        strange = Strange()
        found = _answers(model, examples, computing, options, looking, strange, rescoring.ranking(model, trust_classes))
        first = list(islice(found, 1))  # before anything is written: the inputs may be wrong
        if written.output is not None:
            file = opened.enter_context(open(written.output, "w", encoding="utf-8"))
        write = writer(
            written.format, file, model, asked, written.scores, single=values is not None and len(values) == 1
        )
        answers = _write_all(chain(first, found), write, file if written.draw else None)
    for remark in [*model.task.remarks(answers), *strange.remarks()]:
        print(remark, file=sys.stderr)
    if written.output is not None:
        print(f"Wrote {written.output} ({len(answers):,} answer{'s' * (len(answers) != 1)}).", file=sys.stderr)
    elif not answers:
        print("There was no input.", file=sys.stderr)
    if written.plot is not None:
        _plot(answers[:PICTURES], written.plot)


def _check_together(
    given: InputOptions,
    written: OutputOptions,
    computing: ComputingOptions,
    bulk: BulkOptions,
    rescoring: RescoringOptions,
) -> None:
    """Raises for options that would be ignored: tables larger than memory and streams have fewer."""
    if given.data:
        shown = changed(written, "format", "scores", "draw", "plot", "stream")
        ignored = [*changed(given, "input"), *shown, *changed(rescoring)]
        if ignored:
            raise ValueError(
                f"--data takes no {' or '.join(ignored)}: its output has the format of the input, with scores."
            )
        return
    if changed(bulk):
        raise ValueError(f"Only --data takes {' or '.join(changed(bulk))}: name the tables with it.")
    if written.stream:
        shown = [*changed(written, "draw", "plot", "scores"), *(["--format csv"] if written.format == "csv" else [])]
        several = changed(computing, "workers") if computing.workers != 1 else []
        ignored = [*changed(given, "input"), *shown, *several, *changed(rescoring)]
        if ignored:
            raise ValueError(f"--stream takes no {' or '.join(ignored)}: a text is written as it is found.")


def _write_all(
    found: Iterator[tuple[Example, Answer]], write: Callable[[int, Example, Answer], None], drawing: TextIO | None
) -> list[Answer]:
    """Writes answers as they come, and draws them if there is a file for it; returns all, the first ones whole."""
    answers: list[Answer] = []
    for number, (example, answer) in enumerate(found, start=1):
        answers.append(answer if number <= PICTURES else _bare(answer))
        write(number, example, answer)
        if drawing is not None and answer.attention is not None and answer.attention.queries:
            draw_answer(answer, drawing)
    return answers


def _plot(answers: Sequence[Answer], path: str) -> None:
    from saccade.interpretation.plots import Bars, Heat, plot_attention

    shown = [answer.attention for answer in answers if answer.attention is not None]
    drawings = [
        Bars(a.weights[0].tolist(), a.keys, a.queries[0]) if is_wide(a) else Heat(a.weights, a.keys, a.queries)
        for a in shown
        if a.queries
    ]
    plot_attention(drawings, path)


def _answers(
    model: Run,
    examples: Iterator[Example],
    computing: ComputingOptions,
    options: dict[str, Any],
    looking: str | None,
    strange: Strange,
    ranking: Ranking | None,
) -> Iterator[tuple[Example, Answer]]:
    """Each input with its answer, in order; answers are printed before more inputs are read."""
    from saccade.runs.workers import Workers

    read = long = 0
    task, workers = model.task, computing.workers or 1
    with Workers(task, model.model, workers) if workers != 1 else nullcontext() as several:
        predict_all = partial(task.predict, model.model) if several is None else several.predict
        for chunk in chunks(examples, CHUNK):
            for place, left in task.truncated(model.model, chunk).items():
                long += 1
                if long <= NAMED:
                    print(f"Input {read + place + 1} has {left}.", file=sys.stderr)
            if task.empty_answer() is not None:
                strange.add_empty([read + n for n, each in enumerate(chunk, start=1) if task.is_empty(each)])
            asked = options if ranking is None else ranking.asked(options)
            answers = predict_all(chunk, batch_size=computing.batch_size, **asked)
            if ranking is not None:
                answers = ranking.ranked(answers, options)
            strange.add(task.unknown(chunk, answers))
            if looking is not None and any(answer.attention is None for answer in answers):
                raise ValueError(
                    f"{looking} shows what a model looked at, but {type(model.model).__name__} has no attention here."
                )
            yield from zip(chunk, answers, strict=True)
            sys.stdout.flush()
            read += len(chunk)
    if long > NAMED:
        print(f"{long:,} of {read:,} inputs were too long and were truncated.", file=sys.stderr)


def _bare(answer: Answer) -> Answer:
    """An answer without the parts that would fill the memory; the counts that remarks add up stay."""
    from dataclasses import replace

    counts = {name: value for name, value in answer.details.items() if isinstance(value, int | float)}
    value = answer.value if answer.value == [] else None  # of several labels none
    return replace(answer, value=value, attention=None, alternatives=[], details=counts)
