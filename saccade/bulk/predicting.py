"""Bulk prediction from files to a folder of files."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade.bulk.blocks import blocks_of, check_files
from saccade.bulk.engines import engines
from saccade.bulk.job import BulkJob
from saccade.bulk.manifest import Manifest
from saccade.checks import check_count
from saccade.data.corpus import Corpus
from saccade.data.readers.files import stamp
from saccade.locks import RunLock
from saccade.runs import Run
from saccade.runs.folder import files_of

BLOCK = 10_000
"""The default number of rows per block, that is, per output file: what a crash can lose."""


class Summary(NamedTuple):
    """How a bulk prediction ended."""

    blocks: int
    """Output files."""
    rows: int
    """Answers in them."""
    skipped: int
    """Rows of the input that could not be used."""
    bad: list[str]
    """The first of these."""
    truncated: int
    strange: int
    """Inputs that were too long, or had parts that do not occur in the training data."""


def predict_files(
    run: Run,
    data: Sequence[str],
    output: str | os.PathLike[str],
    *,
    engine: str = "embedded",
    workers: int | None = None,
    corpus: Corpus | None = None,
    block_rows: int = BLOCK,
    batch_size: int = 64,
    column_prefix: str = "",
    details: bool = False,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
    **options: Any,
) -> Summary:
    """Answers each row of tables that may be larger than memory.

    The output folder gets a file for each block of rows, in the format of the input and in its order: the input's
    columns, then `answer` and `score`. Each appears when it is complete. A second call with the same arguments does
    only the missing blocks; one with other arguments is rejected.

    Args:
        run: the trained model.
        data: Parquet, JSON Lines, CSV or TSV files, all of one format.
        output: a folder, which is created if necessary.
        engine: embedded or ray; the rows do not depend on it.
        workers: how many processes share the work.
        corpus: how the tables are read: columns, header, bad rows.
        block_rows: the rows of one output file; about a thousand are in memory at a time, however many these are.
        batch_size: how many inputs are answered together.
        column_prefix: a prefix for the names of the new columns.
        details: adds a column `details` with everything the task reports about an answer, as JSON.
        say: prints a line for the user.
        options: the task's, such as `beam=5`.
    """
    check_count("block_rows", block_rows)
    check_count("batch_size", batch_size)
    if workers is not None:
        check_count("workers", workers)
    chosen = engines.create(engine, workers=workers)
    run.task.options.of(options)
    files, folder = check_files(data), Path(os.path.abspath(output))
    job = BulkJob(run.task, run.model, corpus or Corpus(), options, batch_size, folder, column_prefix, details)
    source = job.examples(files)
    settings = {
        "model": fingerprint(run.folder),
        "options": options,
        "reading": {"columns": job.corpus.columns, "header": job.corpus.header, "bad_rows": job.corpus.bad_rows},
        "form": {"prefix": column_prefix, "details": details, "block_rows": block_rows, "batch_size": batch_size},
        "data": {file: stamp(file) for file in files},
    }
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; the output of --data is a folder.")
    with RunLock(folder):
        manifest = Manifest(folder, files, settings)
        blocks = manifest.open(blocks_of(source.readers, block_rows))
        for left in folder.glob(".part-*"):  # of a call that was killed
            left.unlink()
        todo = [block for block in blocks if block.number not in manifest.done]
        if manifest.done:
            say(f"{folder} has {len(manifest.done):,} of {len(blocks):,} blocks already.")
        for count, done in enumerate(chosen.run(job, todo) if todo else (), start=1):
            manifest.add(done)
            say(f"block {count:,} of {len(todo):,}: {done.rows:,} rows")
    every = manifest.done.values()
    return Summary(
        blocks=len(every),
        rows=sum(done.rows for done in every),
        skipped=sum(done.skipped for done in every),
        bad=[bad for number in sorted(manifest.done) for bad in manifest.done[number].bad][:20],
        truncated=sum(done.truncated for done in every),
        strange=sum(done.strange for done in every),
    )


def fingerprint(run: Path) -> str:
    """A fingerprint of everything that the answers of a run depend on."""
    digest = hashlib.sha256()
    for path in files_of(run):
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
