"""Groups of options that commands take, each checked as it is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.checks import check_count
from saccade.commands.columns import parse_columns, parse_yes_no
from saccade.commands.pictures import check_picture, check_place
from saccade.registry import nearest

if TYPE_CHECKING:
    from saccade.runs import Run
    from saccade.tasks.base import Ranking

FORMATS = ("text", "jsonl", "csv")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How tables are read.

    Args:
        columns: which column plays which role, by name or number from 0, as text=body or source=en,target=de.
        header: whether TSV and CSV files begin with a header, yes or no.
        bad_rows: what to do with a row that cannot be used, error or skip; skipped rows are counted and named.
    """

    columns: str | None = None
    header: str | None = None
    bad_rows: str | None = None

    def __post_init__(self) -> None:
        if self.bad_rows not in (None, "error", "skip"):
            raise ValueError(f"--bad-rows must be error or skip, got {self.bad_rows!r:.60}.")
        parse_yes_no(self.header, "--header")

    def reading(self, roles: Iterable[str]) -> dict[str, Any]:
        """What the user asked for, as arguments of a `Corpus`; an error about columns names these roles."""
        header = parse_yes_no(self.header, "--header")
        found = {"columns": parse_columns(self.columns, roles), "header": header, "bad_rows": self.bad_rows}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ComputingOptions:
    """How the work is shared.

    Args:
        batch_size: how many inputs are answered together.
        workers: how many processes share the work, each with one thread; as many as there are cores is fastest
            (default: 1).
    """

    batch_size: int = 64
    workers: int | None = None

    def __post_init__(self) -> None:
        check_count("--batch-size", self.batch_size)
        if self.workers is not None:
            check_count("--workers", self.workers)


@dataclass(frozen=True, kw_only=True)
class RescoringOptions:
    """Help from a language model.

    Args:
        lm: the run of a language model that reranks the texts found by a search.
        lm_weight: how much the language model counts.
    """

    lm: str | None = None
    lm_weight: float = 0.3

    def load(self, trust: bool) -> Run | None:
        """The language model, if there is one."""
        from saccade.runs import load

        return None if self.lm is None else load(self.lm, trust=trust)

    def ranking(self, run: Run, trust: bool) -> Ranking | None:
        """How it orders the answers of a run."""
        language = self.load(trust)
        return None if language is None else run.task.ranked_by(language.task, language.model, self.lm_weight)


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Inputs other than files.

    Args:
        input: an input as text; may be given several times.
        data: large tables, or a pattern such as 'big/*.parquet'; --output is then a folder.
    """

    input: list[str] | None = None
    data: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How answers are written.

    Args:
        format: text, jsonl (one object per line, with scores and attention weights) or csv.
        output: the file to write, or with --data the folder (default: standard output).
        scores: add the score of each answer; higher means more certain. For a label it is its probability, for several
            labels the certainty of the least certain one, for a text its length-normalised log-probability.
        draw: draw what the model looked at for each answer, in the terminal.
        plot: write a picture of what the model looked at for the first answers, as .png, .svg or .pdf.
        stream: transcribe a recording while it is still being read, if the model can, and report the latency; - reads a
            WAV file from standard input.
    """

    format: str = "text"
    output: str | None = None
    scores: bool = False
    draw: bool = False
    plot: str | None = None
    stream: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"--format: unknown {self.format!r}.{nearest(self.format, FORMATS)}")
        if self.draw and self.format != "text":
            raise ValueError(f"--draw cannot be combined with --format {self.format}.")
        if self.plot is not None:
            check_picture(self.plot)

    def check_file(self, inputs: list[str]) -> None:
        """Raises unless --output can be written and is not one of the inputs."""
        if self.output is None:
            return
        check_place(self.output, "--output")
        if any(Path(self.output).resolve() == Path(path).resolve() for path in inputs):
            raise ValueError(f"--output {self.output} is also an input and would be overwritten: name another file.")


@dataclass(frozen=True, kw_only=True)
class BulkOptions:
    """How --data is answered.

    Args:
        engine: where it is processed: embedded (this machine) or ray (a cluster, all of whose cores work unless
            --workers says otherwise), with the same result.
        block_rows: how many rows each output file has.
        column_prefix: a prefix for the names of the columns that are added.
        details: add a JSON column with all details of an answer.
    """

    engine: str = "embedded"
    block_rows: int = 10_000
    column_prefix: str = ""
    details: bool = False

    def __post_init__(self) -> None:
        check_count("--block-rows", self.block_rows)
