"""Training from a configuration to a finished run."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from saccade.artifacts import write_file
from saccade.configuration import ConfigError, override, read_config
from saccade.configuration.classes import spell_out
from saccade.data.readers.memory import frame_rows
from saccade.locks import RunLock
from saccade.runs.card import model_card
from saccade.runs.folder import (
    check_output,
    check_run,
    check_unchanged,
    save_config,
    seal_run,
    with_absolute_paths,
)
from saccade.runs.keywords import suggesting
from saccade.runs.origin import WeightsOrigin, find_origin
from saccade.runs.plan import PartOf, Plan
from saccade.runs.preparation import held_out_share, is_main, prepare
from saccade.runs.provenance import Provenance, this_start
from saccade.runs.run import Run
from saccade.runs.stages import say
from saccade.tasks import Task
from saccade.tasks.initialising import start_embeddings
from saccade.training import Checkpoints, Trainer, seed_everything
from saccade.training.trainer import check_folder


@suggesting
def train(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    task: PartOf[Task] | None = None,
    model: PartOf[nn.Module] | None = None,
    data: Any = None,
    trainer: PartOf[Trainer] | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    init_from: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    trust: bool = True,
) -> Run:
    """Trains a model, and returns its run.

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
        init_from: a folder whose weights to start from, where names and shapes agree: another run, or a BERT saved by
            the `transformers` library, whose sizes and vocabulary are then used.
        overrides: single arguments, such as `{"model.hidden_dim": 64}`.
        trust: whether the configuration may name classes that are not Saccade's.
    """
    given = {"task": task, "model": model, "data": data, "trainer": trainer}
    folder, raw = _start(config, output, resume)
    if resume is not None and init_from is not None:
        raise ConfigError("A resumed run already has weights: leave init_from out.")
    begun_from = init_from if resume is None else _begun_from(folder)
    origin = None if begun_from is None else find_origin(begun_from)
    plan, held = planned(raw, given, overrides or {}, trust, origin)
    if resume is not None:
        begun = Plan(with_absolute_paths(read_config(folder / "config.yaml")), trust=trust).plain
        check_unchanged(begun, plan.plain)
        if "train" in held and plan.data.train is not None:
            raise ConfigError(f"data.train was {plan.data.train!r} when this run started: resume it without examples.")
    if "train" not in held and plan.data.train is None:
        if resume is not None:
            again = "saccade.train(resume=..., data=...) in Python"
            raise ConfigError(
                f"{folder} was trained on examples in memory, which it does not keep. Resume it with {again}."
            )
        raise ConfigError("data.train is missing: name the training data, for example --data.train pairs.tsv")
    if resume is None:
        plan.check_training()
    validating = bool(plan.data.valid or held.get("valid") or held_out_share(plan, held))
    plan.trainer.check(plan.task, validating=validating)
    check_folder(folder, resume is not None)
    with RunLock(folder) if is_main() else contextlib.nullcontext():
        if is_main():  # again: another training may have ended there meanwhile
            check_folder(folder, resume is not None)
        return _train(plan, held, folder, resume is not None, origin)


def planned(
    config: str | os.PathLike[str] | Mapping[str, Any] | None,
    parts: Mapping[str, Any],
    overrides: Mapping[str, Any],
    trust: bool,
    origin: WeightsOrigin | None = None,
) -> tuple[Plan, dict[str, Any]]:
    """What is to be trained, and the examples that are in memory; see `train` for the arguments."""
    raw = dict(config) if isinstance(config, Mapping) else {} if config is None else read_config(config)
    data, held = _in_memory(parts["data"])
    for name, part in {**parts, "data": data}.items():
        raw = _merged(raw, name, spell_out(part))
    if origin is not None:
        raw = origin.complete(raw)
    return Plan(with_absolute_paths(override(raw, overrides)), trust=trust), held


def _train(plan: Plan, held: Mapping[str, Any], folder: Path, resume: bool, origin: WeightsOrigin | None) -> Run:
    task, main = plan.task, is_main()
    taught = origin is not None and origin.teach(task)
    had_model = (folder / "model.safetensors").exists()
    try:
        prepared = prepare(plan, held, folder, resume)
    except BaseException:
        if main and not (folder / "config.yaml").exists():  # so that the same command can be given again
            shutil.rmtree(folder / "data", ignore_errors=True)
        raise
    noted = Provenance.read(folder)
    provenance = prepared.provenance._replace(weights="" if origin is None else str(origin.folder.resolve()))
    if noted is not None and resume:
        provenance = noted._replace(starts=[*noted.starts, this_start()])
    if main and not resume:
        provenance.save(folder)
    weights = {} if origin is None else origin.weights(plan.outline())  # before anything of that size is allocated
    seed_everything(plan.trainer.seed)
    model = plan.build()
    if main:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        say(f"Model: {type(model).__name__}, {parameters:,} parameters.")
    fresh = not (resume and Checkpoints(folder / "checkpoints").steps())
    for remark in start_embeddings(task, model, prepared.rows, folder / "data", fresh=fresh, main=main):
        if main:
            say(remark)
    for remark in task.start(model) if fresh else []:
        if main:
            say(remark)
    if origin is not None:
        remark = origin.initialise(model, weights)
        if not taught and not origin.learned_alike(folder):
            remark += " Its vocabulary or labels differ, so embeddings and outputs may not fit."
        if main:
            say(remark)

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


def _begun_from(folder: Path) -> str | None:
    """The folder whose weights a run starts from when it is resumed before its first checkpoint; usually None."""
    noted = None if Checkpoints(folder / "checkpoints").steps() else Provenance.read(folder)
    return None if noted is None else noted.weights or None


def _start(config: Any, output: Any, resume: Any) -> tuple[Path, Any]:
    """The run folder and the configuration to start with."""
    if resume is not None:
        if config is not None or output is not None:
            raise ConfigError("A resumed run already has a configuration and a folder: leave config and output out.")
        folder = check_run(resume)
        return folder, read_config(folder / "config.yaml")
    if output is None:
        raise ConfigError("output is missing: name a folder for the run, for example --output runs/my-model")
    folder = Path(output)
    if is_main():  # it may have started writing before the others look
        check_output(folder)
    return folder, config


def _merged(raw: dict[str, Any], name: str, part: Any) -> dict[str, Any]:
    """The configuration with the arguments of one part; another class replaces all of them."""
    if part is None:
        return raw
    old = {"class": raw[name]} if isinstance(raw.get(name), str) else dict(raw.get(name) or {})
    if not isinstance(part, Mapping):
        return {**raw, name: part}
    return {**raw, name: dict(part) if part.get("class", old.get("class")) != old.get("class") else {**old, **part}}


def _in_memory(data: Any) -> tuple[Any, dict[str, Any]]:
    """The data section of a configuration, and the examples that are in memory, not in files."""
    data = frame_rows(data)
    if isinstance(data, str | os.PathLike | list | tuple):
        data = {"train": data}
    if not isinstance(data, Mapping):
        return data, {}
    splits = {name: frame_rows(v) for name, v in data.items() if name in ("train", "valid") and v is not None}
    held = {name: value for name, value in splits.items() if not _are_files(value)}
    files = {name: _as_text(value) for name, value in splits.items() if name not in held}
    return {name: value for name, value in data.items() if name not in held} | files, held


def _are_files(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], str | os.PathLike)


def _as_text(files: Any) -> Any:
    """Paths as a configuration writes them."""
    return os.fspath(files) if isinstance(files, str | os.PathLike) else [os.fspath(file) for file in files]
