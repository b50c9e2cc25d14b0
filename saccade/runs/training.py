"""Training from a configuration to a finished run."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

import saccade
from saccade.artifacts import read_tensors, weights_of, write_file
from saccade.configuration import ConfigError, override, read_config
from saccade.configuration.classes import spell_out
from saccade.data.corpus import choose_held_out, mark
from saccade.data.spool import Spool
from saccade.data.storage import Stored, fingerprint_of, store
from saccade.locks import RunLock
from saccade.runs.card import model_card
from saccade.runs.folder import (
    check_output,
    check_run,
    check_unchanged,
    chosen_weights,
    save_config,
    save_task,
    seal_run,
    with_absolute_paths,
)
from saccade.runs.plan import Plan
from saccade.runs.provenance import Provenance, this_start
from saccade.runs.run import Run, report_skipped
from saccade.tasks import Example, Row
from saccade.training import seed_everything

MANY = 0.05
"""The share of left-out examples that deserves a warning."""


def train(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    task: Any = None,
    model: Any = None,
    data: Any = None,
    trainer: Any = None,
    output: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    init_from: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    trust: bool = True,
) -> Run:
    """Trains a model and returns its run.

    Each part is a short name, a class, an instance, `functools.partial(Class, argument=...)`, or a dictionary of
    arguments with `class` among them. Parts given next to a configuration replace single arguments of it.

    Args:
        config: a YAML file, the name of a configuration that comes with Saccade, or a dictionary.
        task: generation, classification, ...; generation unless another one is named.
        model: rnnsearch, transformer, pooling, ...
        data: files, or examples in memory, under `train` and `valid`; see `saccade.data.corpus.Corpus`. Without these
            names it is what to train on.
        trainer: how long, how fast, how often; see `saccade.training.Trainer`.
        output: the folder to create.
        resume: the folder of a run to continue, instead of a configuration and an output.
        init_from: the folder of another run whose weights to start from, where names and shapes agree.
        overrides: single arguments, such as `{"model.hidden_dim": 64}`.
        trust: whether the configuration may name classes that are not Saccade's.
    """
    given = {"task": task, "model": model, "data": data, "trainer": trainer}
    held = _in_memory(given)
    folder, raw = _start(config, output, resume)
    for name, part in given.items():
        raw = _merged(raw, name, spell_out(part))
    plan = Plan(with_absolute_paths(override(raw, overrides or {})), trust=trust)
    if resume is not None:
        if init_from is not None:
            raise ConfigError("A resumed run has weights already: leave init_from out.")
        begun = Plan(with_absolute_paths(read_config(folder / "config.yaml")), trust=trust).plain
        check_unchanged(begun, plan.plain)
        if "train" in held and plan.data.train is not None:
            raise ConfigError(f"data.train was {plan.data.train!r} when this run started: resume it without examples.")
    if init_from is not None:
        chosen_weights(check_run(init_from))  # before the data are read
    if "train" not in held and plan.data.train is None:
        raise ConfigError("data.train is missing: say what to train on, for example --data.train pairs.tsv")
    validating = bool(plan.data.valid or held.get("valid") or _share(plan, held))
    plan.trainer.check(plan.task, folder, validating=validating, resume=resume is not None)
    with RunLock(folder) if is_main() else contextlib.nullcontext():
        return _train(plan, held, folder, resume is not None, init_from)


def _share(plan: Plan, held: Mapping[str, Any]) -> float:
    """The share of the training examples that is held out."""
    return plan.data.share(len(held["train"]) if "train" in held else None)


class Prepared(NamedTuple):
    """The examples of a training."""

    rows: Sequence[Row]
    sizes: Any
    valid: list[Example]
    provenance: Provenance


def _train(plan: Plan, held: Mapping[str, Any], folder: Path, resume: bool, init_from: Any) -> Run:
    task, main = plan.task, is_main()
    had_model = (folder / "model.safetensors").exists()
    prepared = _prepare(plan, held, folder, resume)
    noted = Provenance.read(folder)
    provenance = prepared.provenance
    if noted is not None and resume:
        provenance = noted._replace(starts=[*noted.starts, this_start()])
    if main and not resume:
        provenance.save(folder)
    seed_everything(plan.trainer.seed)
    model = plan.build()
    if main:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        _say(f"Model: {type(model).__name__}, {parameters:,} parameters.")
    if init_from is not None:
        _say(initialise(model, init_from))

    def resumed() -> None:  # once it is certain that training can continue
        save_config(folder, plan.plain)
        provenance.save(folder)

    result = plan.trainer.fit(
        task=task,
        model=model,
        train=prepared.rows,
        sizes=prepared.sizes,
        valid=prepared.valid,
        output=folder,
        resume=resume,
        started=resumed if resume else None,
    )
    if main:
        seal_run(folder)
        if had_model or not (folder / "README.md").exists():  # a README without a model is not a card of ours
            write_file(folder / "README.md", model_card(folder.name, plan, model, result, provenance))
    return Run(folder, plan, model, result)


def _prepare(plan: Plan, held: Mapping[str, Any], folder: Path, resume: bool) -> Prepared:
    """Reads the data once, lets the task learn from it, and stores the encoded examples in the run folder.

    A resumed run whose data is the same opens what was stored.
    """
    task, main = plan.task, is_main()
    fitted = resume and (folder / "task").is_dir()
    if fitted:
        task.load(folder / "task")
    sources = {"train": plan.data.train, "valid": plan.data.valid, **held}
    read = {name: plan.data.read(s, task.fields) for name, s in sources.items() if s is not None}
    share = 0.0 if "valid" in read else _share(plan, held)
    held_out_note = {"valid": f"{share:.0%} of the training examples, held out"} if share else {}
    in_memory = "train" in held
    mark_of_data = "\n".join([read["train"].fingerprint(), repr(plan.plain["task"]), str(share), saccade.__version__])
    stored = [folder / "data" / f"{name}.arrow" for name in ("train", "valid")]
    if fitted and not in_memory and all(fingerprint_of(path) == mark_of_data for path in stored):
        rows, valid = Stored(stored[0]), Stored(stored[1])
        noted = Provenance.read(folder)
        if noted is not None:
            return Prepared(rows, rows.sizes(), list(valid) if share else list(read.get("valid", ())), noted)
    if main:
        _say(f"Reading {_described(sources['train'])} ...")
        folder.mkdir(parents=True, exist_ok=True)
    with Spool(read["train"], folder / "data") as spool:
        marks = [mark(example, task.inputs) for example in spool]
        held_out = choose_held_out(marks, share) if share else set()
        if share and not held_out and plan.trainer.watching():
            raise ValueError(
                f"{_described(sources['train'])}: {_counted(len(marks))} with {len(set(marks))} different inputs, too "
                f"few to hold out {share:.0%} for validation. Add data, or name a file to validate on (--data.valid)."
            )
        kept = Kept(spool, marks, held_out)
        if share:
            valid = [example for example, m in zip(spool, marks, strict=True) if m in held_out]
        else:
            valid = list(read.get("valid", ()))
        if not fitted:
            if main:
                _say("Learning vocabularies and scales ...")
            task.fit(kept)
        rows, sizes, left_out = _encode(plan, kept, folder, "" if in_memory else mark_of_data)
    if not in_memory:
        store(valid if share else [], stored[1], fingerprint=mark_of_data, exact=True)
    task.observe(sizes)
    if main and not fitted:
        if not resume:
            save_config(folder, plan.plain)
        save_task(task, folder / "task")
    counts = {name: report_skipped(examples) for name, examples in read.items()}
    provenance = Provenance(
        sources={name: _described(source) for name, source in sources.items()} | held_out_note,
        train=len(rows),
        valid=len(valid),
        left_out=dict(left_out),
        skipped=counts["train"],
        starts=[this_start()],
    )
    if main:
        for line in _summary(plan, provenance, len(marks)):
            _say(line)
    return Prepared(rows, sizes, valid, provenance)


class Kept:
    """The examples that are not held out; can be read many times."""

    def __init__(self, examples: Spool, marks: Sequence[int], held_out: set[int]) -> None:
        self.examples, self.marks, self.held_out = examples, marks, held_out

    def __iter__(self) -> Iterator[Example]:
        return (e for e, m in zip(self.examples, self.marks, strict=True) if m not in self.held_out)


def _encode(plan: Plan, kept: Kept, folder: Path, mark_of_data: str) -> tuple[Sequence[Row], Any, Counter[str]]:
    """The training examples as rows, their sizes, and why others were left out. Those from files go to Arrow."""
    task, left_out = plan.task, Counter[str]()

    def rows() -> Iterator[Row]:
        for example in kept:
            row = task.encode(example)
            reason = task.left_out(row)
            if reason is None:
                yield row
            else:
                left_out[reason] += 1

    if mark_of_data:
        path = folder / "data" / "train.arrow"
        path.unlink(missing_ok=True)  # of a training that did not get far, perhaps with other limits
        found: Any = store(rows(), path, size=task.size, fingerprint=mark_of_data)
        sizes: Any = found.sizes()
    else:
        found = list(rows())
        sizes = [task.size(row) for row in found]
    if not len(found):
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in left_out.most_common(3)) or "there are none"
        raise ValueError(f"There is nothing to train on: {reasons}.")
    return found, sizes, left_out


def _summary(plan: Plan, data: Provenance, read: int) -> Iterator[str]:
    """What a user should know before training starts."""
    skipped = f", skipped {data.skipped:,} bad rows" if data.skipped else ""
    yield f"Read {_counted(read)} from {data.sources['train']}{skipped}."
    out = sum(data.left_out.values())
    for reason, count in data.left_out.items():
        yield f"  Left out {count:,}: {reason}."
    if out > MANY * read:
        yield f"WARNING: {out / read:.0%} of the examples are left out. Raise the limit if that is not what you want."
    yield f"Training on {_counted(data.train)}, validating on {data.valid:,} ({data.sources.get('valid', 'none')})."
    for role, field in plan.task.fields.items():
        if field.learned():
            yield f"  {role}: {field.learned()}"
        for warning in field.warnings(data.train):
            yield f"WARNING: {role}: {warning}"


def _counted(examples: int) -> str:
    return f"{examples:,} example{'s' * (examples != 1)}"


def initialise(model: nn.Module, folder: str | os.PathLike[str]) -> str:
    """Copies the weights of another run into a model, where names and shapes agree; says how many did."""
    path = check_run(folder)
    given, own = read_tensors(chosen_weights(path).file), weights_of(model)
    fitting = [name for name, tensor in own.items() if name in given and given[name].shape == tensor.shape]
    if not fitting:
        raise ValueError(f"No weights of {path} fit this model: names or shapes differ throughout.")
    for name in fitting:
        own[name].copy_(given[name])
    rest = [name for name in own if name not in fitting]
    new = f" (new: {', '.join(rest[:5])}{', ...' if len(rest) > 5 else ''})" if rest else ""
    few = "WARNING: s" if len(fitting) < len(own) / 2 else "S"
    return f"{few}tarted from {len(fitting)} of {len(own)} weight tensors of {path}{new}."


def is_main() -> bool:
    """Whether this is the one of torchrun's processes that writes."""
    return int(os.environ.get("RANK", "0")) == 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _start(config: Any, output: Any, resume: Any) -> tuple[Path, dict[str, Any]]:
    """The run folder and the configuration to start with."""
    if resume is not None:
        if config is not None or output is not None:
            raise ConfigError("A resumed run has its configuration and its folder: leave config and output out.")
        folder = check_run(resume)
        return folder, read_config(folder / "config.yaml")
    if output is None:
        raise ConfigError("Say where the run goes, for example --output runs/my-model")
    folder = Path(output)
    if is_main():  # it may have started writing before the others look
        check_output(folder)
    return folder, dict(config) if isinstance(config, Mapping) else {} if config is None else read_config(config)


def _merged(raw: dict[str, Any], name: str, part: Any) -> dict[str, Any]:
    """The configuration with the arguments of one part; another class replaces all of them."""
    if part is None:
        return raw
    old = {"class": raw[name]} if isinstance(raw.get(name), str) else dict(raw.get(name) or {})
    if not isinstance(part, Mapping):
        return {**raw, name: part}
    return {**raw, name: dict(part) if part.get("class", old.get("class")) != old.get("class") else {**old, **part}}


def _in_memory(given: dict[str, Any]) -> dict[str, Any]:
    """Takes examples that are in memory, not in files, out of the configuration."""
    data = given["data"]
    if isinstance(data, str | os.PathLike | list | tuple):
        data = {"train": data}
    if not isinstance(data, Mapping):
        return {}
    splits = {name: value for name, value in data.items() if name in ("train", "valid") and value is not None}
    held = {name: value for name, value in splits.items() if not _are_files(value)}
    files = {name: _as_text(value) for name, value in splits.items() if name not in held}
    given["data"] = {name: value for name, value in data.items() if name not in held} | files
    return held


def _are_files(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], str | os.PathLike)


def _as_text(files: Any) -> Any:
    """Paths as a configuration writes them."""
    return os.fspath(files) if isinstance(files, str | os.PathLike) else [os.fspath(file) for file in files]


def _described(source: Any) -> str:
    if source is None:
        return "none"
    if isinstance(source, str):
        return ", ".join(map(_shown, source.split(",")))
    if len(source) and isinstance(source[0], str):
        return ", ".join(map(_described, source))
    return f"{len(source):,} examples in memory"


def _shown(file: str) -> str:
    """A file as the card names it: where it is on this machine is nobody's business."""
    if not os.path.isabs(file):
        return file
    near = os.path.relpath(file)
    return os.path.basename(file) if near.startswith("..") else near
