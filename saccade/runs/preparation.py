"""The data of a training: read once, learned from, encoded and stored."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import saccade
from saccade.artifacts import CHECKSUMS, ArtifactError, make_folder, seal, verify
from saccade.data.corpus import FOLD, GROUP, mark
from saccade.data.errors import DataError
from saccade.data.readers.columns import parts as single_columns
from saccade.data.spool import Spool
from saccade.data.storage import Stored, content_of, fingerprint_of, store
from saccade.runs.evaluating import report_skipped
from saccade.runs.folder import save_config, save_task, verify_task
from saccade.runs.plan import Plan
from saccade.runs.provenance import Provenance, this_start
from saccade.runs.reading import read_examples
from saccade.runs.splitting import Purpose, Split, chosen, fields_of
from saccade.runs.stages import Stage, say
from saccade.runs.summary import counted, described, described_sources, summary
from saccade.tasks import Example, Row, Task
from saccade.tasks.data import FitError

STORED = TRAIN, VALID = "train.arrow", "valid.arrow"
"""The encoded examples and the validation examples, in the folder `data` of a run."""


class PreparedData(NamedTuple):
    """The examples of a training."""

    rows: Sequence[Row]
    sizes: Any
    valid: Sequence[Example]
    provenance: Provenance


def held_out_share(plan: Plan, held: Mapping[str, Any]) -> float:
    """The share of the training examples that is held out."""
    return plan.data.share(len(held["train"]) if "train" in held else None)


def prepare(plan: Plan, held: Mapping[str, Any], folder: Path, resume: bool) -> PreparedData:
    """Reads the data once, lets the task learn from it, and stores the encoded examples in the run folder.

    A resumed run whose data is the same opens what was stored.
    """
    task, main = plan.task, is_main()
    fitted = resume and (folder / "task").is_dir()
    if fitted:
        verify_task(folder / "task")
        task.load(folder / "task")
    sources = {"train": plan.data.train, "valid": plan.data.valid, **held}
    share = held_out_share(plan, held) if sources["valid"] is None else 0.0
    scored = plan.trainer.validate_examples != 0
    of_training = fields_of(task, plan.data)
    read = {"train": read_examples(plan.data, sources["train"], task, of_training, scored=scored and share > 0)}
    if sources["valid"] is not None:
        own = {role: field for role, field in of_training.items() if role != FOLD}
        read["valid"] = read_examples(plan.data, sources["valid"], task, own, optional=[GROUP], scored=scored)
    in_memory = "train" in held
    split_by = [str(share), repr((plan.data.folds, plan.data.fold, plan.data.split, plan.data.group))]
    mark_of_data = "\n".join([read["train"].fingerprint(), repr(plan.plain["task"]), *split_by, saccade.__version__])
    if fitted and not in_memory and _is_stored(folder / "data", mark_of_data):
        noted = Provenance.read(folder)
        if noted is not None:
            known = Stored(folder / "data" / TRAIN)
            validating: Sequence[Example] = list(Stored(folder / "data" / VALID) if share else read.get("valid", ()))
            return PreparedData(known, known.sizes(), task.joined(validating), noted)
    before = _contents(folder / "data") if fitted and not in_memory and main else []
    make_folder(folder)
    with Stage(f"Reading {described(sources['train'])}", read["train"], main=main) as reading:
        spool = Spool(reading, folder)
    with spool:
        split = Split(spool, task, plan.data)
        parts = split.parts(share)
        if share and not (parts == Purpose.VALID).any() and plan.trainer.watching():
            raise ValueError(
                f"{described(sources['train'])} has {counted(len(split), split.inputs())}, too few to hold out "
                f"{share:.0%} for validation. Add data, or name a file to validate on (--data.valid)."
            )
        kept = TrainingExamples(spool, parts == Purpose.TRAIN)
        if not fitted:
            with Stage("Learning vocabularies and scales", kept, total=len(kept), main=main) as learning:
                _fit(plan, learning, described(sources["train"]), len(kept), int((parts == Purpose.VALID).sum()))
        # After `fit`, so that an unknown label in a file of its own is refused with its line.
        apart = chosen(spool, parts == Purpose.VALID)
        valid = _encodable(task, apart, len(kept), main) if share else [*read.get("valid", ())]
        rows, sizes, used, left_out, cut = _encode(plan, kept, folder, "" if in_memory else mark_of_data)
    if main and not in_memory:
        with contextlib.suppress(DataError):  # values that Arrow cannot hold: a resumed run reads the data again
            store(valid if share else [], folder / "data" / VALID, fingerprint=mark_of_data, exact=True)
            seal(folder / "data", STORED)
    if before and all(before) and _contents(folder / "data") != before:
        say(
            f"WARNING: {described(sources['train'])} has changed since this training began, and is read again: what "
            "follows is trained on the changed examples, with the vocabularies and labels of the old ones. To continue "
            "exactly, restore the file; to train on the new one alone, start over in another folder (--output)."
        )
    leaks = (
        []
        if fitted
        else [
            f"{role}: {leak}"
            for role, field in task.inputs.items()
            for leak in field.leaks(example[role] for example in valid if role in example)
        ]
        or _leaks_of_groups(split.marks[parts == Purpose.TRAIN], valid, plan.data.group)
    )
    valid = task.joined(valid)
    task.observe(sizes)
    if main and not fitted:
        if not resume:
            save_config(folder, plan.plain)
        save_task(task, folder / "task")
    counts = {name: report_skipped(examples) for name, examples in read.items()}
    provenance = Provenance(
        sources=described_sources(sources, plan, share),
        train=used,
        valid=len(valid),
        left_out=dict(left_out),
        skipped=counts["train"],
        starts=[this_start()],
        truncated=dict(cut),
    )
    if main:
        for line in summary(plan, provenance, read["train"], len(split), len(rows)):
            say(line)
        for leak in leaks:
            say(f"WARNING: {leak}")
    return PreparedData(rows, sizes, valid, provenance)


def _fit(plan: Plan, examples: Iterable[Example], source: str, count: int, held: int) -> None:
    """Fits the task to this many examples; an error names the data and the column, and how many are held out."""
    try:
        plan.task.fit(examples)
    except FitError as error:
        columns = plan.data.columns or {}
        named = f" (column {'+'.join(map(str, single_columns(columns[error.role])))})" if error.role in columns else ""
        also = ""
        if 4 * held > count:
            also = f" Held out for validation: {held:,} of {count + held:,}. Add data, or name a file (--data.valid)."
        raise ValueError(f"{source}, {error.role}{named}: {error.problem}{also}") from error


def _leaks_of_groups(trained: NDArray[np.uint64], valid: Iterable[Example], column: str | None) -> list[str]:
    """A warning if groups, such as patients, are both trained and validated on, by the marks of those trained on."""
    groups = {mark(example, [GROUP]) for example in valid if GROUP in example}
    both = len(groups.intersection(trained.tolist()))
    if not both:
        return []
    return [
        f"{both:,} of the {len(groups):,} different values of {column!r} in the validation data are also in the "
        "training data: the figures may be better than on new ones. Keep each in one file, or leave out data.valid."
    ]


def _is_stored(folder: Path, mark_of_data: str) -> bool:
    """Whether a folder contains intact encoded examples of this data; warns if they are damaged."""
    if not (folder / CHECKSUMS).exists():
        return False
    try:
        verify(folder, required=STORED)
    except ArtifactError as error:
        warnings.warn(f"{error} Reading the data again.", stacklevel=2)
        return False
    return all(fingerprint_of(folder / name) == mark_of_data for name in STORED)


def _contents(folder: Path) -> list[str]:
    """A digest of the examples in each stored file."""
    return [content_of(folder / name) for name in STORED]


def _encodable(task: Task, examples: Iterable[Example], trained: int, main: bool) -> list[Example]:
    """The held-out examples that the task can encode: all examples of a rare label may have been held out."""
    found, problems = list[Example](), list[str]()
    for example in examples:
        try:
            task.encode(example)
        except DataError as error:
            problems.append(str(error))
        else:
            found.append(example)
    if problems and not found:
        one = len(problems) == 1
        held = "The only held-out example cannot" if one else f"None of the {len(problems):,} held-out examples can"
        asked = [f" {text}" for field in task.targets.values() for text in field.warnings(trained) if "?" in text]
        raise ValueError(
            f"{held} be validated on: {problems[0].rstrip('.')}.{''.join(asked)} Is every label in more than one "
            "example? If so, name a file to validate on (--data.valid)."
        )
    if problems and main:
        say(f"WARNING: {len(problems):,} of the held-out examples cannot be validated on: {problems[0]}")
    return found


class TrainingExamples:
    """The examples that are trained on; can be read many times."""

    def __init__(self, examples: Spool, wanted: NDArray[np.bool_]) -> None:
        self.examples, self.wanted = examples, wanted

    def __len__(self) -> int:
        return int(self.wanted.sum())

    def __iter__(self) -> Iterator[Example]:
        return chosen(self.examples, self.wanted)


def _encode(
    plan: Plan, kept: TrainingExamples, folder: Path, mark_of_data: str
) -> tuple[Sequence[Row], Any, int, Counter[str], Counter[str]]:
    """The training examples as rows, stored as Arrow if they come from files, and the sizes of the rows.

    Also the number of examples, why others were left out, and why some are read in part.
    """
    task, used, left_out, cut = plan.task, 0, Counter[str](), Counter[str]()

    def rows(examples: Iterable[Example]) -> Iterator[Row]:
        nonlocal used
        for example in examples:
            found = task.rows(example)
            reason = next((reason for row in found if (reason := task.left_out(row)) is not None), None)
            if reason is None:
                used += 1
                cut.update({part for row in found if (part := task.cut(row)) is not None})
                yield from found
            else:
                left_out[reason] += 1

    name = "Encoding and storing examples" if mark_of_data else "Encoding examples"
    with Stage(name, kept, total=len(kept), main=is_main()) as encoding:
        if mark_of_data:
            with _stored_rows(folder) as path:
                found: Any = store(rows(encoding), path, size=task.size, fingerprint=mark_of_data)
            sizes: Any = found.sizes()
        else:
            found = list(rows(encoding))
            sizes = [task.size(row) for row in found]
    if not len(found):
        reasons = "; ".join(f"{counted(count)} with a {reason}" for reason, count in left_out.most_common(3))
        problem = f"{reasons}. Raise the limit" if reasons else "the data has no examples"
        raise ValueError(f"There is nothing to train on: {problem}.")
    return found, sizes, used, left_out, cut


@contextlib.contextmanager
def _stored_rows(folder: Path) -> Iterator[Path]:
    """The file to store rows in.

    Only the main process, which holds the lock, changes the run folder. The others have their own file, which needs no
    name once it is open.
    """
    if is_main():
        for name in (CHECKSUMS, *STORED):  # of a training that did not get far, perhaps with other limits; or damaged
            (folder / "data" / name).unlink(missing_ok=True)
        yield folder / "data" / TRAIN
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".data-") as own:
        yield Path(own) / TRAIN


def is_main() -> bool:
    """Whether this is the process among torchrun's that writes."""
    return int(os.environ.get("RANK", "0")) == 0
