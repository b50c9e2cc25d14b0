"""The command that uses a trained model: predict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.commands.columns import parse_columns, parse_yes_no
from saccade.commands.inputs import check_one_source, chunks, input_corpus, named_inputs, read_inputs
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.pictures import check_picture, check_place
from saccade.commands.strange import Strange
from saccade.commands.writing import draw_answer, is_wide, writer
from saccade.registry import nearest

if TYPE_CHECKING:
    from saccade.runs import Run
    from saccade.tasks import Answer, Example
    from saccade.tasks.base import Ranking

PICTURES = 6
"""How many answers --plot draws."""

CHUNK = 1024
"""How many inputs are read before the first answer: inputs of similar size are answered together."""

FORMATS = ("text", "jsonl", "csv")

NAMED = 5
"""How many truncated inputs are named; the others are counted."""


def predict(
    run: str,
    inputs: list[str],
    *,
    input: list[str] | None = None,
    data: list[str] | None = None,
    format: str = "text",
    output: str | None = None,
    scores: bool = False,
    draw: bool = False,
    plot: str | None = None,
    columns: str | None = None,
    header: str | None = None,
    bad_rows: str = "error",
    batch_size: int = 64,
    workers: int | None = None,
    engine: str = "embedded",
    block_rows: int = 10_000,
    column_prefix: str = "",
    details: bool = False,
    stream: bool = False,
    lm: str | None = None,
    lm_weight: float = 0.3,
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
        input: an input as text; may be given several times.
        data: large tables, or a pattern such as 'big/*.parquet'; --output is then a folder.
        format: text, jsonl (one object per line, with scores and attention weights) or csv.
        output: the file to write, or with --data the folder (default: standard output).
        scores: add the score of each answer: the higher, the surer. For a label it is its probability, for several
            labels how sure the least certain decision is, for a text its log-probability by length.
        draw: draw what the model looked at for each answer, in the terminal.
        plot: write a picture of what the model looked at for the first answers, as .png, .svg or .pdf.
        columns: which columns of a table to read, as text=body.
        header: whether tables begin with a header, yes or no.
        bad_rows: what to do with a row that cannot be used, error or skip; skipped rows get no answer.
        batch_size: how many inputs are answered together.
        workers: how many processes share the work, each with one thread; as many as there are cores is fastest
            (default: 1, or all cores of the cluster with --engine ray).
        engine: where --data is processed: embedded (this machine) or ray (a cluster), with the same result.
        block_rows: how many rows each output file of --data has.
        column_prefix: how the names of the columns that --data adds begin.
        details: with --data, add a JSON column with all details of an answer.
        stream: write the text of a recording while it is still being read, if the model can, with its latency; - is a
            WAV file on standard input.
        lm: the run of a language model, which helps to choose among the texts that a search finds.
        lm_weight: how much the language model counts.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    from saccade.checks import check_count

    with leaving_at_once():
        from saccade.runs import load

    if data:
        if input or format != "text" or scores or draw or plot is not None or stream or lm is not None:
            raise ValueError(
                "--data takes no --input, --format, --scores, --draw, --plot, --stream or --lm: its output has the "
                "format of the input, with scores."
            )
        from saccade.commands.bulk import predict_in_bulk

        predict_in_bulk(
            load(run, trust=trust_classes),
            [*data, *inputs],
            output,
            columns=parse_columns(columns),
            header=parse_yes_no(header, "--header"),
            bad_rows=bad_rows,
            engine=engine,
            workers=workers,
            block_rows=block_rows,
            batch_size=batch_size,
            column_prefix=column_prefix,
            details=details,
            **options,
        )
        return
    if engine != "embedded":
        raise ValueError(f"--engine {engine} works on tables: name them by --data.")
    if format not in FORMATS:
        raise ValueError(f"--format: unknown {format!r}.{nearest(format, FORMATS)}")
    workers = 1 if workers is None else workers
    if draw and format != "text":
        raise ValueError(f"--draw cannot be combined with --format {format}.")
    check_count("--workers", workers)
    check_count("--batch-size", batch_size)
    if plot is not None:
        check_picture(plot)
    if output is not None:
        check_place(output, "--output")
        if any(Path(output).resolve() == Path(path).resolve() for path in inputs):
            raise ValueError(f"--output {output} is one of the inputs, and would overwrite it: name another file.")
    model = load(run, trust=trust_classes)
    input = named_inputs(model.task, options, input)
    check_one_source(input, inputs)
    if stream:
        if input or draw or plot is not None or scores or lm is not None or format == "csv" or workers != 1:
            raise ValueError("--stream takes no --input, --draw, --plot, --scores, --lm, --workers or --format csv.")
        from saccade.commands.streaming import predict_streamed

        with open(output, "w", encoding="utf-8") if output is not None else nullcontext(sys.stdout) as file:
            predict_streamed(model, inputs, file, as_json=format == "jsonl", **options)
        return
    rescoring = None
    if lm is not None:
        language = load(lm, trust=trust_classes)
        rescoring = model.task.ranked_by(language.task, language.model, lm_weight)
    asked = model.task.options.of(options)
    looking = "--draw" if draw else "--plot" if plot is not None else None
    corpus = input_corpus(model, parse_columns(columns), parse_yes_no(header, "--header"), bad_rows)
    examples = read_inputs(model.task, corpus, inputs, input)
    answers: list[Answer] = []
    counted, strange = 0, Strange()
    found = _answers(model, examples, workers, batch_size, options, looking, strange, rescoring)
    first = list(islice(found, 1))  # before anything is written: the inputs may be wrong
    with open(output, "w", encoding="utf-8") if output is not None else nullcontext(sys.stdout) as file:
        write = writer(format, file, model, asked, scores, single=input is not None and len(input) == 1)
        for example, answer in chain(first, found):
            counted += 1
            answers.append(answer if len(answers) < PICTURES else _bare(answer))
            write(counted, example, answer)
            if draw and answer.attention is not None and answer.attention.queries:
                draw_answer(answer, file)
    for remark in [*model.task.remarks(answers), *strange.remarks()]:
        print(remark, file=sys.stderr)
    if output is not None:
        print(f"Wrote {output} ({counted:,} answer{'s' * (counted != 1)}).", file=sys.stderr)
    elif not counted:
        print("There was no input.", file=sys.stderr)
    if plot is not None:
        from saccade.interpretation.plots import Bars, Heat, plot_attention

        shown = [answer.attention for answer in answers[:PICTURES] if answer.attention is not None]
        drawings = [
            Bars(a.weights[0].tolist(), a.keys, a.queries[0]) if is_wide(a) else Heat(a.weights, a.keys, a.queries)
            for a in shown
            if a.queries
        ]
        plot_attention(drawings, plot)


def _answers(
    model: Run,
    examples: Iterator[Example],
    workers: int,
    batch_size: int,
    options: dict[str, Any],
    looking: str | None,
    strange: Strange,
    rescoring: Ranking | None = None,
) -> Iterator[tuple[Example, Answer]]:
    """Each input with its answer, in order; answers are printed before more inputs are read."""
    from saccade.runs.workers import Workers

    read = long = 0
    task = model.task
    with Workers(task, model.model, workers) if workers != 1 else nullcontext() as several:
        predict_all = partial(task.predict, model.model) if several is None else several.predict
        for chunk in chunks(examples, CHUNK):
            for place, left in task.truncated(model.model, chunk).items():
                long += 1
                if long <= NAMED:
                    print(f"Input {read + place + 1} has {left}.", file=sys.stderr)
            if task.empty_answer() is not None:
                strange.add_empty([read + n for n, each in enumerate(chunk, start=1) if task.is_empty(each)])
            asked = options if rescoring is None else rescoring.asked(options)
            answers = predict_all(chunk, batch_size=batch_size, **asked)
            if rescoring is not None:
                answers = rescoring.ranked(answers, options)
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
    """An answer without what would fill the memory if there are many; counts, which remarks add up, stay."""
    from dataclasses import replace

    counts = {name: value for name, value in answer.details.items() if isinstance(value, int | float)}
    return replace(answer, value=None, attention=None, alternatives=[], details=counts)
