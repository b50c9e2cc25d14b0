"""The commands that make a model: train, validate, copy."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from saccade.commands.columns import parse_columns
from saccade.commands.interrupting import leaving_at_once
from saccade.configuration import ConfigError, override, read_config
from saccade.configuration.files import find_config
from saccade.configuration.spelling import check_spelling


def train_model(
    config: str | None = None,
    *,
    output: str | None = None,
    resume: str | None = None,
    init_from: str | None = None,
    **overrides: str,
) -> None:
    """Train a model, or resume a training.

        saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model
        saccade train my.yaml --model.hidden_dim 64 --model.selection sparsemax --output runs/smaller
        saccade train my.yaml --trainer.schedule '{class: cosine, warmup: 100}' --output runs/cosine
        saccade train --resume runs/my-model
        torchrun --nproc-per-node 2 -m saccade train my.yaml --output runs/by-two

    Any argument of the configuration can be set as --section.argument value, where the sections are task, model, data
    and trainer, and a value may be YAML; with a configuration, --help lists them all. Ctrl-C (or SIGTERM) saves a
    checkpoint and exits with code 130; --resume continues exactly there. The processes that torchrun starts share
    every batch, and give the losses of a single process.

    Args:
        config: a YAML file, or the name of one that comes with Saccade (saccade list configs).
        output: the folder to create, for the weights, the configuration, the figures and the model card.
        resume: the folder of a run to continue.
        init_from: the folder of another run whose weights to start from, where names and shapes agree.
    """
    with _stopping(Path(output or resume or ".")):
        overrides = _with_data(overrides)
        if config is not None:
            check_spelling(override(read_config(config), overrides))  # before anything slow is imported
        _train(config, output, resume, init_from, overrides)


def _train(
    config: str | None, output: str | None, resume: str | None, init_from: str | None, overrides: dict[str, str]
) -> None:
    with leaving_at_once():
        from saccade.runs import train
        from saccade.runs.preparation import is_main

    if config is None and resume is None and not {"model", "model.class"} & overrides.keys():
        raise ConfigError(
            "Say what to train: a YAML file, or a configuration that `saccade list configs` shows, for example "
            "saccade train translation/rnnsearch --data.train pairs.tsv --output runs/my-model"
        )
    run = train(config, output=output, resume=resume, init_from=init_from, overrides=overrides)
    if is_main():
        print(f"{run.folder} is ready: saccade predict {run.folder} INPUTS, or saccade explain {run.folder} --help")


@contextlib.contextmanager
def _stopping(folder: Path) -> Iterator[None]:
    """Treats SIGTERM like SIGINT while the training loop, which saves a checkpoint first, is not running."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        if any((folder / "checkpoints").glob("step-*")):
            again = f"continue from the last checkpoint with saccade train --resume {folder}"
        elif (folder / "config.yaml").is_file():
            again = f"before the first checkpoint: run the same command again, or saccade train --resume {folder}"
        else:
            again = "before anything was written: run the same command again"
        print(f"Interrupted; {again}", file=sys.stderr)
        raise KeyboardInterrupt(again) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def validate_config(config: str, **overrides: str) -> None:
    """Check a configuration without training.

        saccade validate my.yaml --model.selection sparsemax

    Checks everything that can be checked before the data is read: names, types, and whether the parts fit together.

    Args:
        config: a YAML file, or the name of one that comes with Saccade.
    """
    written = override(read_config(config), _with_data(overrides))
    check_spelling(written)
    from saccade.runs.plan import Plan
    from saccade.training.processes import check_trackers

    plan = Plan(written, trust=True)
    validating = bool(plan.data.valid or plan.data.share(None))
    plan.trainer.check(plan.task, os.devnull, validating=validating)  # a folder without an earlier training
    check_trackers(plan.trainer.trackers)
    for files in filter(None, (plan.data.train, plan.data.valid)):
        plan.data.read(files, plan.task.fields, extras=plan.task.extras, check=plan.task.check_example)
    outline = plan.outline()
    count = sum(parameter.numel() for name, parameter in outline.named_parameters() if "embedding" not in name)
    print(f"{config} is valid: {type(outline).__name__}, {count:,} parameters without embeddings.")


def copy_config(name: str, file: str) -> None:
    """Copy a configuration that comes with Saccade, to edit it.

        saccade copy translation/rnnsearch my.yaml

    Args:
        name: translation/rnnsearch, or another one that `saccade list configs` shows.
        file: the file to write; it must not exist yet.
    """
    source, target = find_config(name), Path(file)
    if target.exists():
        raise FileExistsError(f"{target} exists already: choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    print(f"{target} is a copy of {name}: edit it, then saccade train {target} --data.train ... --output ...")


def explain_config(config: str, overrides: dict[str, Any]) -> str:
    """Every argument that a configuration may set: its type, its meaning, and its value here."""
    from saccade.configuration.hints import argument_helps, hint_of, readable
    from saccade.runs.plan import Plan

    plan = Plan(override(read_config(config), _with_data(overrides)), trust=True)
    lines = []
    for section, part in plan.parts.items():
        lines += [f"{section}: {_paragraphs(part.kind)[0]}", ""]
        helps = argument_helps(part.kind)
        for name, value in part.plain.items():
            lines.append(f"  --{section}.{name}  ({readable(hint_of(part.kind, name))})")
            lines += textwrap.wrap(helps.get(name, ""), 112, initial_indent=" " * 6, subsequent_indent=" " * 6)
            lines.append(f"      here: {json.dumps(value, ensure_ascii=False)}")
        lines.append("")
    return "\n".join(lines)


def _with_data(overrides: dict[str, str]) -> dict[str, str]:
    """`--data pairs.tsv` means what to train on; columns may be written as for `saccade evaluate`."""
    changed: dict[str, Any] = dict(overrides)
    if not changed.get("data", "{").lstrip().startswith("{"):
        changed["data.train"] = changed.pop("data")
    if "=" in changed.get("data.columns", ""):
        changed["data.columns"] = parse_columns(changed["data.columns"])
    return changed


def _paragraphs(kind: type) -> list[str]:
    return (inspect.getdoc(kind) or kind.__name__).split("\n\n")
