"""The data of a training: read once, learned from, encoded and stored."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import saccade
from saccade.artifacts import make_folder
from saccade.data.corpus import choose_held_out, mark
from saccade.data.errors import DataError
from saccade.data.spool import Spool
from saccade.data.storage import Stored, fingerprint_of, store
from saccade.runs.folder import save_config, save_task
from saccade.runs.plan import Plan
from saccade.runs.provenance import Provenance, this_start
from saccade.runs.run import report_skipped
from saccade.tasks import Example, Row, Task

MANY = 0.05
"""The share of left-out examples that deserves a warning."""


class Prepared(NamedTuple):
    """The examples of a training."""

    rows: Sequence[Row]
    sizes: Any
    valid: Sequence[Example]
    provenance: Provenance


def held_out_share(plan: Plan, held: Mapping[str, Any]) -> float:
    """The share of the training examples that is held out."""
    return plan.data.share(len(held["train"]) if "train" in held else None)


def prepare(plan: Plan, held: Mapping[str, Any], folder: Path, resume: bool) -> Prepared:
    """Reads the data once, lets the task learn from it, and stores the encoded examples in the run folder.

    A resumed run whose data is the same opens what was stored.
    """
    task, main = plan.task, is_main()
    fitted = resume and (folder / "task").is_dir()
    if fitted:
        task.load(folder / "task")
    sources = {"train": plan.data.train, "valid": plan.data.valid, **held}
    read = {
        name: plan.data.read(s, task.fields, extras=task.extras, check=task.check_example)
        for name, s in sources.items()
        if s is not None
    }
    share = 0.0 if "valid" in read else held_out_share(plan, held)
    held_out_note = {"valid": f"{share:.0%} of the training examples, held out"} if share else {}
    in_memory = "train" in held
    mark_of_data = "\n".join([read["train"].fingerprint(), repr(plan.plain["task"]), str(share), saccade.__version__])
    stored = [folder / "data" / f"{name}.arrow" for name in ("train", "valid")]
    if fitted and not in_memory and all(fingerprint_of(path) == mark_of_data for path in stored):
        noted = Provenance.read(folder)
        if noted is not None:
            known = Stored(stored[0])
            validating: Sequence[Example] = list(Stored(stored[1])) if share else list(read.get("valid", ()))
            return Prepared(known, known.sizes(), validating, noted)
    if main:
        say(f"Reading {described(sources['train'])} ...")
    make_folder(folder)
    with Spool(read["train"], folder) as spool:
        marks = array("Q", (mark(example, task.inputs) for example in spool))
        held_out = choose_held_out(marks, share) if share else set()
        if share and not held_out and plan.trainer.watching():
            raise ValueError(
                f"{described(sources['train'])}: {_counted(len(marks))} with {len(set(marks))} different inputs, too "
                f"few to hold out {share:.0%} for validation. Add data, or name a file to validate on (--data.valid)."
            )
        kept = Kept(spool, marks, held_out)
        if not fitted:
            if main:
                say("Learning vocabularies and scales ...")
            task.fit(kept)
        valid: Sequence[Example]
        if share:
            valid = _encodable(task, (e for e, m in zip(spool, marks, strict=True) if m in held_out), main)
        else:  # after `fit`, so that an unknown label is refused with its line
            valid = list(read.get("valid", ()))
        rows, sizes, used, left_out = _encode(plan, kept, folder, "" if in_memory else mark_of_data)
    if main and not in_memory:
        with contextlib.suppress(DataError):  # values that Arrow cannot hold: a resumed run reads the data again
            store(valid if share else [], stored[1], fingerprint=mark_of_data, exact=True)
    task.observe(sizes)
    if main and not fitted:
        if not resume:
            save_config(folder, plan.plain)
        save_task(task, folder / "task")
    counts = {name: report_skipped(examples) for name, examples in read.items()}
    provenance = Provenance(
        sources={name: described(source) for name, source in sources.items()} | held_out_note,
        train=used,
        valid=len(valid),
        left_out=dict(left_out),
        skipped=counts["train"],
        starts=[this_start()],
    )
    if main:
        for line in _summary(plan, provenance, len(marks), len(rows)):
            say(line)
    return Prepared(rows, sizes, valid, provenance)


def _encodable(task: Task, examples: Iterable[Example], main: bool) -> list[Example]:
    """The held-out examples that the task can encode: all examples of a rare label may have been held out."""
    found, problems = list[Example](), list[str]()
    for example in examples:
        try:
            task.encode(example)
        except DataError as error:
            problems.append(str(error))
        else:
            found.append(example)
    if problems and main:
        say(f"WARNING: {len(problems):,} of the held-out examples cannot be validated on: {problems[0]}")
    return found


class Kept:
    """The examples that are not held out; can be read many times."""

    def __init__(self, examples: Spool, marks: Sequence[int], held_out: set[int]) -> None:
        self.examples, self.marks, self.held_out = examples, marks, held_out

    def __iter__(self) -> Iterator[Example]:
        return (e for e, m in zip(self.examples, self.marks, strict=True) if m not in self.held_out)


def _encode(plan: Plan, kept: Kept, folder: Path, mark_of_data: str) -> tuple[Sequence[Row], Any, int, Counter[str]]:
    """The training examples as rows, which go to Arrow if they come from files, and the sizes of the rows.

    Also the number of examples, and why others were left out.
    """
    task, used, left_out = plan.task, 0, Counter[str]()

    def rows() -> Iterator[Row]:
        nonlocal used
        for example in kept:
            found = task.rows(example)
            reason = next((reason for row in found if (reason := task.left_out(row)) is not None), None)
            if reason is None:
                used += 1
                yield from found
            else:
                left_out[reason] += 1

    if mark_of_data:
        with _stored_rows(folder) as path:
            found: Any = store(rows(), path, size=task.size, fingerprint=mark_of_data)
        sizes: Any = found.sizes()
    else:
        found = list(rows())
        sizes = [task.size(row) for row in found]
    if not len(found):
        reasons = "; ".join(f"{_counted(count)} with a {reason}" for reason, count in left_out.most_common(3))
        raise ValueError(f"There is nothing to train on: {reasons or 'there are no examples'}. Raise the limit.")
    return found, sizes, used, left_out


@contextlib.contextmanager
def _stored_rows(folder: Path) -> Iterator[Path]:
    """The file to store rows in.

    Only the main process, which holds the lock, changes what the run folder keeps. The others have a file of their own,
    which needs no name once it is open.
    """
    if is_main():
        path = folder / "data" / "train.arrow"
        path.unlink(missing_ok=True)  # of a training that did not get far, perhaps with other limits
        yield path
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".data-") as own:
        yield Path(own) / "train.arrow"


def _summary(plan: Plan, data: Provenance, read: int, rows: int) -> Iterator[str]:
    """What a user should know before training starts."""
    skipped = f", skipped {data.skipped:,} bad row{'s' * (data.skipped != 1)}" if data.skipped else ""
    yield f"Read {_counted(read)} from {data.sources['train']}{skipped}."
    out = sum(data.left_out.values())
    for reason, count in data.left_out.items():
        yield f"  Left out {count:,}: {reason}."
    if out > MANY * (out + data.train):
        share = f"{out / (out + data.train):.0%}"
        yield f"WARNING: {share} of the training examples are left out. Raise the limit if that is not what you want."
    cut = "" if rows == data.train else f", cut into {rows:,} pieces"
    valid = f"{data.valid:,} ({data.sources.get('valid', 'none')})"
    yield f"Training on {_counted(data.train)}{cut}, validating on {valid}."
    for role, field in plan.task.fields.items():
        if field.learned():
            yield f"  {role}: {field.learned()}"
        for warning in field.warnings(data.train):
            yield f"WARNING: {role}: {warning}"


def _counted(examples: int) -> str:
    return f"{examples:,} example{'s' * (examples != 1)}"


def is_main() -> bool:
    """Whether this is the one of torchrun's processes that writes."""
    return int(os.environ.get("RANK", "0")) == 0


def say(line: str) -> None:
    """Prints a line for the user, beside the output of a command."""
    print(line, file=sys.stderr, flush=True)


def described(source: Any) -> str:
    """A source of examples as the card names it."""
    if source is None:
        return "none"
    if isinstance(source, str):
        return ", ".join(map(_shown, source.split(",")))
    if len(source) and isinstance(source[0], str):
        return ", ".join(map(described, source))
    return f"{len(source):,} examples in memory"


def _shown(file: str) -> str:
    """A file as the card names it: where it is on this machine is nobody's business."""
    if not os.path.isabs(file):
        return file
    near = os.path.relpath(file)
    return os.path.basename(file) if near.startswith("..") else near
