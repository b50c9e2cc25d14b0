"""`saccade predict --data`: tables larger than memory."""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import TYPE_CHECKING, Any

from saccade.commands.inputs import input_corpus

if TYPE_CHECKING:
    from saccade.commands.options import BulkOptions, ComputingOptions, TableOptions
    from saccade.runs import Run

EVERY = 5.0
"""Seconds between lines of progress."""


def predict_in_bulk(
    run: Run,
    data: list[str],
    output: str | None,
    tables: TableOptions,
    computing: ComputingOptions,
    bulk: BulkOptions,
    options: dict[str, Any],
) -> None:
    """Answers the rows of tables, writes them to a folder of files, and prints how many there were."""
    from saccade.bulk import predict_files

    if output is None:
        raise ValueError("--data needs --output: the folder for the answers.")
    spoken = 0.0

    def say(line: str) -> None:
        nonlocal spoken
        if not line.startswith("block") or time.monotonic() - spoken > EVERY:
            print(line, file=sys.stderr)
            spoken = time.monotonic()

    done = predict_files(
        run,
        data,
        output,
        corpus=input_corpus(run, tables),
        say=say,
        **dataclasses.asdict(computing),
        **dataclasses.asdict(bulk),
        **options,
    )
    for bad in done.bad:
        print(f"  {bad}", file=sys.stderr)
    for count, problem in (
        (done.skipped, "bad rows were skipped and have no answer"),
        (done.truncated, "inputs were too long and were truncated"),
        (done.strange, "inputs have parts that the model has never seen"),
    ):
        if count:
            print(f"{count:,} {problem}.", file=sys.stderr)
    print(f"Wrote {output} ({done.rows:,} answers in {done.blocks:,} files).", file=sys.stderr)
