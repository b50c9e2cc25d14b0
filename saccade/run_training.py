"""How a run is made, or gone on with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import saccade
from saccade.artifacts import write_file
from saccade.card import model_card
from saccade.configuration import ConfigError, override, read_config
from saccade.configuration.classes import spell_out
from saccade.data.corpus import hold_out
from saccade.data.storage import store
from saccade.provenance import Provenance, this_start
from saccade.run import Run, are_files, is_main, read_data, report_skipped
from saccade.run_folder import (
    check_output,
    check_run,
    check_unchanged,
    save_config,
    save_task,
    seal_run,
    with_absolute_paths,
)
from saccade.runs.plan import Plan
from saccade.tasks import Encoded
from saccade.training import seed_everything


def train(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    task: Any = None,
    model: Any = None,
    data: Any = None,
    trainer: Any = None,
    output: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Run:
    """Trains a model and returns its run.

    Each part is a short name, a class, `functools.partial(Class, argument=...)`, or a dictionary of arguments with
    `class` among them; what is given beside a configuration replaces single arguments of it.

    Args:
        config: a YAML file, the name of a configuration that comes with Saccade, or a dictionary.
        task: translation, unless another one is named.
        model: rnnsearch, transformer, ...
        data: files, or examples in memory, under `train` and `valid`; see `saccade.data.corpus.Corpus`. Without
            these names they are what to train on.
        trainer: how long, how fast, how often; see `saccade.training.Trainer`.
        output: the folder to make.
        resume: the folder of a run to go on with, instead of a configuration and an output.
        overrides: `{"model.hidden_dim": 64}` and the like.
    """
    given = {"task": task, "model": model, "data": data, "trainer": trainer}
    held = _in_memory(given)
    folder, raw = _start(config, output, resume)
    for name, part in given.items():
        raw = _merged(raw, name, spell_out(part))
    plan = Plan(with_absolute_paths(override(raw, overrides or {})), trust=True)
    if resume is not None:
        begun = Plan(with_absolute_paths(read_config(folder / "config.yaml")), trust=True).plain
        check_unchanged(begun, plan.plain)
        if "train" in held and plan.data.train is not None:
            raise ConfigError(f"data.train was {plan.data.train!r} when this run began: resume it without examples.")
    if "train" not in held and plan.data.train is None:
        raise ConfigError("data.train is missing: say what to train on, for example --data.train pairs.tsv")
    validating = bool(plan.data.valid or held.get("valid") or plan.data.share(held.get("train")))
    plan.trainer.check(plan.task, folder, validating=validating, resume=resume is not None)
    return _train(plan, held, folder, resume is not None)


def _train(plan: Plan, held: Mapping[str, Any], folder: Path, resume: bool) -> Run:
    task = plan.task
    sources = {"train": plan.data.train, "valid": plan.data.valid, **held}
    examples = {name: read_data(s, plan.data, task.columns) for name, s in sources.items() if s is not None}
    share = plan.data.share(examples["train"])
    if "valid" not in examples and share:
        examples["train"], examples["valid"] = hold_out(examples["train"], share)
        sources["valid"] = f"{share:.0%} of the training examples, held out"
    main = is_main()
    had_model = (folder / "model.safetensors").exists()
    if resume and (folder / "task").is_dir():
        task.load(folder / "task")
    else:
        task.fit(examples["train"])
        if main:
            if not resume:
                save_config(folder, plan.plain)
            save_task(task, folder / "task")
    valid = list(examples.get("valid", ()))
    encoded, sizes, counts = _encode(plan, examples["train"], folder)
    provenance = Provenance(
        sources={name: _described(source) for name, source in sources.items()},
        train=len(encoded),
        valid=len(valid),
        long=counts["long"],
        skipped=counts["skipped"],
        starts=[this_start()],
    )
    noted = Provenance.read(folder)
    if noted is not None and resume:
        provenance = noted._replace(starts=[*noted.starts, *provenance.starts])
    elif noted is not None and not counts["read"]:  # an earlier start stored the examples, and knew the bad ones
        provenance = provenance._replace(long=noted.long, skipped=noted.skipped)
    if main and not resume:
        provenance.save(folder)
    report_skipped(examples.get("valid"))
    seed_everything(plan.trainer.seed)
    model = plan.build()

    def resumed() -> None:  # once it is sure that it can go on
        save_config(folder, plan.plain)
        provenance.save(folder)

    result = plan.trainer.fit(
        task=task,
        model=model,
        train=encoded,
        sizes=sizes,
        valid=valid,
        output=folder,
        resume=resume,
        started=resumed if resume else None,
    )
    if main:
        seal_run(folder)
        if had_model or not (folder / "README.md").exists():  # one without a model is no card of ours
            write_file(folder / "README.md", model_card(folder.name, plan, model, result, provenance))
    return Run(folder, plan, model, result)


def _encode(plan: Plan, examples: Any, folder: Path) -> tuple[Sequence[Encoded], Any, Counter[str]]:
    """The training examples as numbers, their sizes, and how many were bad, or too long for the task to train on.

    Those from files go to an Arrow file in the run folder, which is read in place of the files when a run goes on.
    """
    task, counts = plan.task, Counter[str]()

    def encoded() -> Iterator[Encoded]:
        for example in examples:
            numbers = task.encode(example)
            counts["read"] += 1
            if task.keeps(numbers):
                yield numbers
            else:
                counts["long"] += 1

    if isinstance(examples, list):
        found: Any = list(encoded())
        sizes: Any = [task.size(numbers) for numbers in found]
    else:
        mark = "\n".join([examples.fingerprint(), repr(plan.plain["task"]), saccade.__version__])
        found = store(encoded(), folder / "data" / "train.arrow", size=task.size, fingerprint=mark)
        sizes = found.sizes()
    counts["skipped"] = report_skipped(examples)
    if not len(found):
        raise ValueError("There is nothing to train on: no example is short enough for the task's max_length.")
    return found, sizes, counts


def _start(config: Any, output: Any, resume: Any) -> tuple[Path, dict[str, Any]]:
    """The run folder and the configuration to begin with."""
    if resume is not None:
        if config is not None or output is not None:
            raise ConfigError("A resumed run has its configuration and its folder: leave config and output out.")
        folder = check_run(resume)
        return folder, read_config(folder / "config.yaml")
    if output is None:
        raise ConfigError("Say where the run goes, for example --output runs/my-model")
    folder = Path(output)
    if is_main():  # which may have begun to write before the others look
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
    """Takes examples that are given as such, not as files, out of the configuration."""
    data = given["data"]
    if isinstance(data, str | os.PathLike | list | tuple):
        data = {"train": data}
    if not isinstance(data, Mapping):
        return {}
    splits = {name: value for name, value in data.items() if name in ("train", "valid") and value is not None}
    held = {name: value for name, value in splits.items() if not are_files(value)}
    files = {name: _as_text(value) for name, value in splits.items() if name not in held}
    given["data"] = {name: value for name, value in data.items() if name not in held} | files
    return held


def _as_text(files: Any) -> Any:
    """Paths as a configuration writes them."""
    return os.fspath(files) if isinstance(files, str | os.PathLike) else [os.fspath(file) for file in files]


def _described(source: Any) -> str:
    if source is None:
        return "none"
    if isinstance(source, str):
        return ", ".join(map(_shown, source.split(",")))
    if source and isinstance(source[0], str):
        return ", ".join(map(_described, source))
    return f"{len(source)} examples in memory"


def _shown(file: str) -> str:
    """A file as the card names it: where it stands on this machine is nobody's business."""
    if not os.path.isabs(file):
        return file
    near = os.path.relpath(file)
    return os.path.basename(file) if near.startswith("..") else near
